package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// Defaults of [Options].
const (
	// DefaultApprovalTimeout is how long an approval request is open.
	DefaultApprovalTimeout = 5 * time.Minute
	// DefaultCloseGrace is how long an agent may take to end by itself.
	DefaultCloseGrace = 2 * time.Second
	// TurnGrace is how long an agent may take to end a turn that was interrupted
	// because it took too long.
	TurnGrace = 10 * time.Second
)

// Options say how a session behaves. The zero value is usable.
type Options struct {
	// Mode is how package runner starts the agent. Empty means ModeMinimal.
	Mode Mode

	// Started is called once, immediately before the agent process starts.
	Started func(agent.Start)

	// Stderr receives the agent's standard error, on one goroutine. A write error
	// stops the agent. In ModeTmux it must be nil, because a terminal has none.
	Stderr io.Writer

	// Events receives every event in order, on one goroutine. An event is valid only
	// during the call. A call that blocks pauses the agent's output; nothing is
	// lost. An error ends the session, and [Session.Err] returns it; Events is not
	// called again.
	Events func(*agent.Event) error

	// Sending is called before a message is sent to the agent, once for each message,
	// also if the agent then never receives it. It must not call the session, which
	// waits for it.
	Sending func(m Message)

	// Delivered is called when the agent has received a message, with the message's
	// turn. Over is called when a turn has ended. The calls come in order: the
	// message that began the turn, those added to it, its end, then the next turn.
	// For a message that the agent never received, only Over is called. Neither may
	// call the session, which waits for them.
	Delivered func(t *Turn, m Message)
	Over      func(t *Turn)

	// Closed is called once when the agent's output has been read to its end and
	// every turn has ended, before [Session.Ended] is closed, with the value of
	// [Session.Err]. It may call any method except Stop.
	Closed func(err error)

	// Policy answers approval requests before Approve or the user does. Its answer is in
	// [agent.Event.Policy] of the event of the request, which then has no ApprovalID. It
	// is called on the goroutine of Events, before Events. Nil answers none.
	Policy Policy

	// Approve answers approval requests, each on a separate goroutine. Its context
	// ends when the request no longer needs an answer. Nil leaves them to
	// [Session.Answer], as does an empty decision.
	Approve func(ctx context.Context, a Approval) Decision

	// Ask answers questions of the agent, each request on a separate goroutine. Its
	// context ends when the request no longer needs an answer. It returns an answer for
	// each question: see [QuestionRequest.Check]. Other lists, such as an empty one,
	// decline the request. A nil list leaves it to [Session.AnswerQuestions] and
	// [Session.Answer], as does a nil Ask.
	Ask func(ctx context.Context, q QuestionRequest) (answers [][]string)

	// Answered is called when answers to questions were sent to the agent, on the
	// goroutine that answers and maybe during a call of Events.
	Answered func(q QuestionRequest, answers [][]string)

	// ApprovalTimeout is how long an approval request or question waits for its answer
	// before it is declined. Zero means DefaultApprovalTimeout; a negative value declines at
	// once.
	ApprovalTimeout time.Duration

	// TurnTimeout bounds each turn whose message sets no bound; see
	// [Message.TurnTimeout]. Zero means no limit.
	TurnTimeout time.Duration

	// Created is a time at which the session to resume is known to have
	// existed; see [engine.Start].
	Created time.Time

	// CloseGrace is how long the agent may take to end by itself after Stop,
	// before it is ended by force. Zero means DefaultCloseGrace.
	CloseGrace time.Duration
}

// A Policy answers approval requests by rules: see package session/policy.
type Policy interface {
	// Decide returns how to answer a request for a tool, nil if the agent does not name
	// it, in a session that was started with start.
	Decide(tool *agent.Tool, start engine.Start) agent.PolicyAnswer
}

// CheckAccess returns an error of kind agent.ErrUsage for a session with full access and a
// policy: its agent requests no approval that the policy could answer.
func (o *Options) CheckAccess(access agent.Access) error {
	if o.Policy != nil && access == agent.AccessFull {
		return agent.Usagef("the policy has no effect with full access, because the agent requests no approval; use --access write")
	}
	return nil
}

// An Approval is an approval request of the agent.
type Approval struct {
	ID     string      `json:"id"`
	Tool   *agent.Tool `json:"tool,omitempty"`   // nil if the agent does not name it
	Reason string      `json:"reason,omitempty"` // empty if the agent gives none
}

// A Message is a message to an agent.
type Message struct {
	Text string
	// Attachments are files that the model gets before Text. See [Session.Check]. A message
	// with files other than text is never added to a running turn.
	Attachments []agent.Attachment
	// Timeout bounds the time until the agent has received the message,
	// including the wait for earlier turns. Zero means no limit.
	Timeout time.Duration
	// TurnTimeout bounds the turn from its beginning to its end, including the time
	// that approval requests wait. A turn that takes longer is interrupted; when the
	// agent has not ended it within [TurnGrace], the session ends. Either way the
	// error of the turn is of kind agent.ErrTimeout. Zero means Options.TurnTimeout;
	// a negative value means no limit. It has no effect on a message added to a
	// running turn.
	TurnTimeout time.Duration
}

// A Mode is how an agent is run in a session.
type Mode string

// The modes.
const (
	ModeMinimal Mode = "minimal" // by its protocol; the default
	ModeTmux    Mode = "tmux"    // its interactive program, in a terminal of tmux
)

// ParseMode returns the mode with a name; the empty name is ModeMinimal.
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case "":
		return ModeMinimal, nil
	case ModeMinimal, ModeTmux:
		return m, nil
	}
	return "", agent.Usagef("%q is not a mode; use minimal or tmux", name)
}

// ErrNoTerminals: the program has no support for ModeTmux.
var ErrNoTerminals = errors.New(`mode tmux is not built in: import _ "github.com/busdk/bus-agent/session/tmux" or set Runner.OpenTerminal`)
