package control

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
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

// StartOptions say what session to start: plain data that another process can start the
// session from. The zero value is usable.
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
	// gets a new one.
	Identity Identity `json:"identity,omitzero"`

	// Env holds additional variables for the agent. They may be secrets, so they are
	// not stored: the caller passes them again to resume the session.
	Env map[string]string `json:"env,omitempty"`

	// UnsavedMCPServers are MCP servers besides those of the settings. They are not
	// stored either.
	UnsavedMCPServers []agent.MCPServer `json:"unsaved_mcp_servers,omitempty"`

	// InitialPrompt is the first message. It may be empty. InitialAttachments are its files.
	InitialPrompt      string             `json:"initial_prompt,omitempty"`
	InitialAttachments []agent.Attachment `json:"initial_attachments,omitempty"`
}

// ResumeOptions say how to resume a session. The zero value resumes it as it was
// started.
type ResumeOptions struct {
	// Settings that are set replace those of the session from then on.
	Settings

	// Env and UnsavedMCPServers are those of [StartOptions].
	Env               map[string]string
	UnsavedMCPServers []agent.MCPServer

	// Prompt is the next message. It may be empty. Attachments are its files.
	Prompt      string
	Attachments []agent.Attachment
}

// checkOptions refuses fields of a session's options that its settings have too.
func checkOptions(o session.Options) error {
	if o.Mode != "" || o.TurnTimeout != 0 || o.ApprovalTimeout != 0 || o.Policy != nil || !o.Created.IsZero() {
		return agent.Usagef("Mode, TurnTimeout, ApprovalTimeout, Policy or Created is set in session.Options; set the first four in Settings; nothing was started")
	}
	return nil
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
	return session.Message{Text: m.Text, Attachments: m.Attachments, Timeout: m.Timeout, TurnTimeout: m.TurnTimeout}
}

// A Message is a message to the agent.
type Message struct {
	Text string
	// Attachments are files that the agent gets with the message: see [session.Message].
	Attachments []agent.Attachment
	// Delivery is how to deliver the message. Empty means the delivery of the
	// session; any other value is refused.
	Delivery engine.Delivery
	// Timeout bounds the time until the agent has received the message, including
	// the wait for earlier turns. Zero means no limit. TurnTimeout bounds the turn:
	// see [session.Message].
	Timeout     time.Duration
	TurnTimeout time.Duration
}
