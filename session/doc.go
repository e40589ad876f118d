// Package session holds a conversation with an agent over many turns: messages go
// in at any time, events come out, questions for permission are answered, and each
// turn has a result of its own.
//
// A [Session] is the portable side. It queues what comes at the wrong moment,
// answers what nobody answers, and knows when a turn is over. The other side is an
// [Engine], which speaks one protocol over the [Transport] that it is handed; it
// starts nothing itself. Package runner starts the agent's process and puts both
// together; authors of runtimes choose an engine in their description, or bring
// one.
//
// # Messages
//
// [Session.Send] queues a message for a turn of its own; messages are answered in
// order. [Session.Steer] adds to the turn that is running. Where that is over when
// the message arrives, or the runtime cannot be steered, it becomes the next turn,
// before those that are queued. No message is dropped: each has a [Turn] that ends
// with its result, or with an error that says that it was not delivered.
//
// # Permission
//
// A question comes as an event of kind agent.KindApproval with an ApprovalID and,
// where there is one, to the callback of the options. It is declined when nobody
// has answered for a time, so a session never waits for ever.
package session
