package sessions

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
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

// StartOptions say what session to start. The zero value starts the runtime that
// is selected by default in the current directory.
type StartOptions struct {
	// WorkDir is where the agent works. Empty means GT_WORKDIR, or else the
	// current directory.
	WorkDir string

	// RuntimeName is the runtime token. Empty lets the runner select one.
	RuntimeName string

	// AccountDir is the folder with the account and the settings of the runtime's
	// CLI, in place of the user's own.
	AccountDir string

	// Env holds additional variables for the agent.
	Env map[string]string

	// InitialPrompt is the first message. It may be empty.
	InitialPrompt string

	// Mode is how the agent is run. Empty means ModeMinimal.
	Mode Mode

	// Identity is who the agent is. What is empty is taken from Env and then from
	// the environment of the runner. An ID that only the environment has is that
	// of somebody else's session when there is an entry for it; then, and where
	// there is none, the session gets a new one. WorkDir is not used.
	Identity Identity

	// Bead is the piece of work that the session is for; hooks are told.
	Bead string

	// Request holds the settings of a run that sessions have too: Model,
	// ReasoningEffort, Verbosity, Access, AllowCommands, AddDirs, Args,
	// TrustWorkspace, RequireInstructions, Place, Timeout (of the opening), and
	// further Env. Any other field must not be set.
	Request agent.Request

	// Session holds the callbacks and times of the session.
	Session session.Options
}

// A SessionHandle names a session.
type SessionHandle struct {
	Runtime   string    // token
	SessionID string    // canonical; in calls also the native ID
	WorkDir   string    // absolute
	PID       int       // of the agent
	StartedAt time.Time // when the agent was started last
	ReadyAt   time.Time // when it could take messages then
}

// A Message is what is said to the agent.
type Message struct {
	Text string
	// Delivery asks for a way of delivery; empty takes that of the session. Any
	// other is refused.
	Delivery session.Delivery
	// Timeout bounds the time until the agent has got the message, waiting for
	// earlier turns included. Zero means no limit.
	Timeout time.Duration
}
