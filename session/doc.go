// Package session holds a conversation with an agent over many turns: messages go
// in at any time, events come out, questions for permission are answered, and each
// turn has a result of its own.
//
// A [Session] queues messages, declines approval requests that are not answered, and
// knows when a turn is over. Package runner starts an agent and returns the session
// with it; package control keeps sessions, also those that another process holds.
// Package engine is for authors of runtimes.
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
