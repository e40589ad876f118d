// Package session holds a conversation with an agent over many turns: it takes
// messages at any time, reports events, passes on approval requests, and returns a
// result for each turn.
//
// A [Session] queues messages, declines approval requests that are not answered, and
// knows when a turn is over. Package runner starts an agent and returns the session
// with it; package control manages sessions, including those held by other
// processes. Package engine is for authors of runtimes.
//
// # Messages
//
// [Session.Send] queues a message for a separate turn; messages are answered in
// order. [Session.Steer] adds to the running turn. If that turn has ended when the
// message arrives, or the runtime cannot be steered, the message becomes the next
// turn, ahead of the queued ones. No message is dropped: each has a [Turn] that ends
// with its result, or with an error that matches [ErrNotDelivered].
//
// # Approval requests
//
// An approval request is reported as an event of kind agent.KindApproval with an
// ApprovalID, and to the callback Approve of [Options]. It is declined after
// ApprovalTimeout, so a session never waits forever.
//
// # Questions
//
// A question of the agent to the user, with options to choose from, is reported as an
// event of kind agent.KindQuestion, and to the callback Ask of [Options] or to the
// caller of [Session.Questions]. [Session.AnswerQuestions] answers it. It is declined
// after ApprovalTimeout too.
package session
