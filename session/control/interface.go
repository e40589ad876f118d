package control

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// AgentRuntime is the Agent Runtime Interface of the specification. A [Manager]
// is one for all runtimes.
type AgentRuntime interface {
	Start(ctx context.Context, opts StartOptions) (SessionHandle, error)
	Resume(ctx context.Context, handle SessionHandle) error
	SendMessage(ctx context.Context, handle SessionHandle, msg Message) error
	Stop(ctx context.Context, handle SessionHandle, reason string) error
	IsReady(ctx context.Context, handle SessionHandle) (bool, error)
	DetectRunning(ctx context.Context, handle SessionHandle) (bool, error)
	ListSessions(ctx context.Context, filter Filter) ([]SessionHandle, error)
}

var _ AgentRuntime = (*Manager)(nil)

// StartOptions say what session to start. The zero value is usable.
type StartOptions struct {
	Settings

	// Name is the user's name for the session: up to 64 letters, digits, dots,
	// dashes and underscores that cannot be the ID of a session. It may be empty. It
	// must differ from the names of running sessions, and of crashed ones that can
	// be resumed.
	Name string `json:"name,omitempty"`

	// Identity is who the agent is. Empty fields are taken from Env and then from the
	// environment of the runner. An ID from the environment alone may belong to
	// another session: if it has an entry, or if there is no ID at all, the session
	// gets a new one. Workdir is not used.
	Identity Identity `json:"identity,omitzero"`

	// Env holds additional variables for the agent. They may be secrets, so they are
	// not stored: the caller passes them again to resume the session.
	Env map[string]string `json:"env,omitempty"`

	// InitialPrompt is the first message. It may be empty.
	InitialPrompt string `json:"initial_prompt,omitempty"`

	// Session holds the callbacks of the session, if this process holds it;
	// [Settings] override its Mode, TurnTimeout and ApprovalTimeout.
	Session session.Options `json:"-"`
}

// A SessionHandle names a session.
type SessionHandle struct {
	Runtime   string    // token
	SessionID string    // canonical; in calls also the native ID
	Workdir   string    // absolute
	PID       int       // of the agent
	StartedAt time.Time // when the agent was started last
	ReadyAt   time.Time // when it could take messages then
}

func (m Message) message() session.Message {
	return session.Message{Text: m.Text, Timeout: m.Timeout, TurnTimeout: m.TurnTimeout}
}

// A Message is a message to the agent.
type Message struct {
	Text string
	// Delivery is how to deliver the message. Empty means the delivery of the
	// session; any other value is refused.
	Delivery engine.Delivery
	// Timeout bounds the time until the agent has received the message, including
	// the wait for earlier turns. Zero means no limit. TurnTimeout bounds the turn:
	// see [session.Message].
	Timeout     time.Duration
	TurnTimeout time.Duration
}
