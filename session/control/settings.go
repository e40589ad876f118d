package control

import (
	"reflect"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/policy"
)

// Settings say how a session is run. The zero value runs the default runtime in the
// current directory. They are kept in the entry of the session, so that a resume, by
// a program or from the command line, continues the same session. They never hold the
// environment of the caller. TrustWorkspace applies to one start only: a resume has
// to set it again.
type Settings struct {
	// Runtime is the runtime token. Empty lets the runner select one.
	Runtime string `json:"runtime"`

	// Workdir is where the agent works. Empty means GT_WORKDIR, or else the
	// current directory.
	Workdir string `json:"workdir"`

	// AccountDir is a folder with the account and the settings of the runtime's
	// CLI, used in place of the user's default.
	AccountDir string `json:"account_dir"`

	// Mode is how the agent is run. Empty means session.ModeMinimal.
	Mode session.Mode `json:"mode"`

	// The settings of a run that have an effect in sessions; see
	// [agent.Request].
	Model               string                `json:"model"`
	ReasoningEffort     agent.ReasoningEffort `json:"effort,omitempty"`
	Verbosity           agent.Verbosity       `json:"verbosity,omitempty"`
	AppendSystemPrompt  string                `json:"append_system_prompt,omitempty"`
	MCPServers          []agent.MCPServer     `json:"mcp_servers,omitempty"`
	AllowTools          []string              `json:"allow_tools,omitempty"`
	DenyTools           []string              `json:"deny_tools,omitempty"`
	UserConfig          agent.UserConfig      `json:"user_config,omitempty"`
	Access              agent.Access          `json:"access"`
	AllowCommands       []string              `json:"allow_commands,omitempty"`
	AddDirs             []string              `json:"add_dirs,omitempty"`
	Args                []string              `json:"args,omitempty"`
	TrustWorkspace      bool                  `json:"trust_workspace,omitempty"`
	RequireInstructions bool                  `json:"require_instructions,omitempty"`
	// Policy answers approval requests before the user does; nil answers none. See
	// [session.Options].
	Policy *policy.Policy `json:"policy,omitempty"`
	// RequireConfigured is that of [runner.Runner].
	RequireConfigured bool `json:"require_configured,omitempty"`

	// StartTimeout bounds the time until the agent takes messages. Zero means the
	// configured default of a run. Idle ends a session that has had no turn for
	// that long; zero means never. TurnTimeout and ApprovalTimeout are those of
	// [session.Options].
	StartTimeout    time.Duration `json:"start_timeout,omitempty"`
	Idle            time.Duration `json:"idle,omitempty"`
	TurnTimeout     time.Duration `json:"turn_timeout,omitempty"`
	ApprovalTimeout time.Duration `json:"approval_timeout,omitempty"`

	// Bead is the work item of the session, for hooks.
	Bead string `json:"bead"`
	// Hooks are notified of this session, besides those of the [Manager].
	Hooks []SinkSpec `json:"hooks,omitempty"`
	// Record says how the session is recorded; nil means that it is not.
	Record *RecordSettings `json:"record,omitempty"`
}

// RecordSettings say how package runs records a session.
type RecordSettings struct {
	Root     string       `json:"root"` // of the runs, absolute
	Required bool         `json:"required,omitempty"`
	Preamble bool         `json:"preamble,omitempty"`
	Labels   agent.Labels `json:"place,omitzero"` // the key in entries that were written before
}

// Recorder returns the recorder that r describes; nil if r is nil.
func (r *RecordSettings) Recorder() agent.Recorder {
	if r == nil {
		return nil
	}
	return &runs.Records{Root: r.Root, Required: r.Required, Preamble: r.Preamble, AgentVersion: true}
}

// request returns the request of a session with these settings.
func (s *Settings) request() agent.Request {
	req := agent.Request{
		Runtime: s.Runtime, Workdir: s.Workdir, Model: s.Model, ReasoningEffort: s.ReasoningEffort, Verbosity: s.Verbosity,
		AppendSystemPrompt: s.AppendSystemPrompt, MCPServers: s.MCPServers, AllowTools: s.AllowTools, DenyTools: s.DenyTools,
		UserConfig: s.UserConfig, Access: s.Access, AllowCommands: s.AllowCommands, AddDirs: s.AddDirs, Args: s.Args,
		TrustWorkspace: s.TrustWorkspace, RequireInstructions: s.RequireInstructions, Timeout: s.StartTimeout,
	}
	if s.Record != nil {
		req.Labels = s.Record.Labels
	}
	return req
}

// over returns s with the settings of base where s sets none. A switch that is on
// in either is on, except trust in the workspace, which base cannot give: the
// workspace can have changed since.
func (s Settings) over(base Settings) Settings {
	base.TrustWorkspace = false
	return or(s, base)
}

// or returns a, with the fields of b where a sets none.
func or[T Settings | Identity](a, b T) T {
	fields, others := reflect.ValueOf(&a).Elem(), reflect.ValueOf(b)
	for i := range fields.NumField() {
		if f := fields.Field(i); f.IsZero() {
			f.Set(others.Field(i))
		}
	}
	return a
}
