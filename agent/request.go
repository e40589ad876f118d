package agent

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"time"
)

// A Request is what a caller wants from one agent: plain data that can be stored and
// sent as JSON. Callbacks and writers are in an [Output]. The zero value of every
// field is a usable default; a run needs Prompt or Template. An operation that does
// not support a field returns an [ErrUsage] error that names it if the field is set.
// Only Labels are ignored where nothing is recorded.
//
// Env can hold secrets.
type Request struct {
	// Runtime is the runtime token, for example "codex" or "codex:local".
	// Empty lets the runner select one.
	Runtime string `json:"runtime,omitempty"`

	// Prompt is the exact text for the model. It is delivered as it is, except
	// that a line break is put before a leading "/" where the runtime would
	// take the prompt for a command.
	Prompt string `json:"prompt,omitempty"`

	// Template, rendered with Vars, is the prompt in place of Prompt; see package
	// render. Vars without a Template is an error.
	Template string            `json:"template,omitempty"`
	Vars     map[string]string `json:"vars,omitempty"`

	// Attachments are files that the model gets before the prompt. A runtime that cannot
	// pass one on refuses the request.
	Attachments []Attachment `json:"attachments,omitempty"`

	// Workdir is the directory the agent works in. Empty means the current one.
	Workdir string `json:"workdir,omitempty"`

	// Model is the model name. Empty means the configured default, "auto" that
	// the runtime chooses.
	Model string `json:"model,omitempty"`

	// ReasoningEffort and Verbosity tune the model, if the runtime supports them.
	// Empty means the configured default.
	ReasoningEffort ReasoningEffort `json:"reasoning_effort,omitempty"`
	Verbosity       Verbosity       `json:"verbosity,omitempty"`

	// AppendSystemPrompt is text that the model gets after the system prompt of the CLI:
	// at most [MaxSystemPrompt] bytes without control characters other than tabs and
	// line ends. Sessions that are resumed need it again.
	AppendSystemPrompt string `json:"append_system_prompt,omitempty"`

	// MCPServers are servers of the user, whose tools the agent gets besides its own. With
	// access write or full it may call them in runs; in sessions some runtimes request an
	// approval. With access read the runtime decides, and may refuse. A server is a program
	// of the user's choice: what it does is not limited by Access.
	// Empty means those of the preferences.
	MCPServers []MCPServer `json:"mcp_servers,omitempty"`

	// AllowTools names the only tools that the agent offers its model, DenyTools those that
	// it does not offer; one of them can be set, with at most [MaxTools] names. Empty means
	// all that the agent has. The names are those that the model sees: letters, digits, "_",
	// "-" and ".", at most [MaxToolName] of them. They differ by CLI, and most CLIs ignore
	// a name that they do not know. Neither list permits anything: Access does.
	AllowTools []string `json:"allow_tools,omitempty"`
	DenyTools  []string `json:"deny_tools,omitempty"`

	// UserConfig says whether the agent uses the user's own configuration of its
	// CLI. Empty means the configured default, or else that of the runtime.
	UserConfig UserConfig `json:"user_config,omitempty"`

	// Access says what the agent may do. Empty means [AccessWrite].
	Access Access `json:"access,omitempty"`

	// AllowCommands are patterns of commands the agent may run although the
	// runtime cannot confine them. The pattern language is the runtime's.
	AllowCommands []string `json:"allow_commands,omitempty"`

	// AddDirs are further directories the agent may read and, with
	// [AccessWrite], change.
	AddDirs []string `json:"add_dirs,omitempty"`

	// Env holds additional variables for the agent as "NAME=value". They win
	// over everything bus-agent sets itself. BUS_AGENT_RUN cannot be set: bus-agent
	// finds the processes of a run by it.
	Env []string `json:"env,omitempty"`

	// Resume continues the session with this ID; Continue the latest session
	// of Workdir. At most one of them may be set.
	Resume   string `json:"resume,omitempty"`
	Continue bool   `json:"continue,omitempty"`

	// MaxTurns limits the model turns of the run. Zero means no limit.
	MaxTurns int `json:"max_turns,omitempty"`

	// Args go to the runtime's CLI as they are, after its own options.
	Args []string `json:"args,omitempty"`

	// TrustWorkspace lets what the repository configures run: hooks, MCP
	// servers, environment files, key helpers. Without it none of that runs.
	TrustWorkspace bool `json:"trust_workspace,omitempty"`

	// RequireInstructions fails the run, before anything is started, when there
	// is no AGENTS.md for Workdir or when it cannot be delivered whole.
	RequireInstructions bool `json:"require_instructions,omitempty"`

	// Timeout bounds the whole run, IdleTimeout the time without any output
	// that shows progress (retries and heartbeats do not). A Timeout of zero
	// means the configured default; an IdleTimeout of zero means none. In JSON
	// they are in nanoseconds.
	Timeout     time.Duration `json:"timeout_ns,omitempty"`
	IdleTimeout time.Duration `json:"idle_timeout_ns,omitempty"`

	// CaptureLimit is how many bytes of head and as many of tail Result keeps
	// of stdout and of stderr. Zero means [DefaultCaptureLimit], a negative
	// number that nothing is kept.
	CaptureLimit int `json:"capture_limit,omitempty"`

	// Schema is a JSON Schema, an object, for the final answer. The agent gets it
	// by an option of its CLI if that takes this schema, and in the prompt
	// otherwise. Only package structured checks the answer.
	Schema json.RawMessage `json:"schema,omitempty"`

	// Labels are for a Recorder.
	Labels Labels `json:"labels,omitzero"`
}

// MaxSystemPrompt is the longest [Request.AppendSystemPrompt], in bytes. Some CLIs take it
// as an argument.
const MaxSystemPrompt = 32 << 10

// Limits of [Request.AllowTools] and [Request.DenyTools].
const (
	MaxTools    = 64
	MaxToolName = 128
)

// CheckUnused returns an [ErrUsage] error if one of the named fields of r is set,
// because operation, for example "a session", does not support it. It panics if r has
// no field of that name.
func (r *Request) CheckUnused(operation string, fields ...string) error {
	v := reflect.ValueOf(r).Elem()
	for _, name := range fields {
		if !v.FieldByName(name).IsZero() {
			return Usagef("%s has no use for Request.%s; nothing was started", operation, name)
		}
	}
	return nil
}

// An Output receives what a run reports. Every field may be nil. Its functions and
// writers are called until the run has returned, and never after.
type Output struct {
	// Started is called once, immediately before the agent process starts.
	Started func(Start)

	// Events receives every event in order, on one goroutine. The event and
	// all it points to are valid only during the call. A returned error stops
	// the agent and fails the run; Events is not called again.
	Events func(*Event) error

	// Stdout and Stderr receive the agent's raw output, unchanged, as it
	// arrives, each on one goroutine. The same writer may be given for both, and
	// for Text: then it is called by one goroutine at a time. A write error stops
	// the agent and fails the run; that writer is not called again.
	Stdout io.Writer
	Stderr io.Writer

	// Text receives the readable conversation as it arrives, rendered by
	// Formatter.
	Text io.Writer

	// Formatter makes the renderer for Text. Nil means the runtime's own;
	// formatters.Raw passes the agent's lines through.
	Formatter func() Formatter

	// Check is called with the result of a run that succeeded, before its end is
	// recorded, and may change Result.Text. An error fails the run, of kind ErrAgent
	// unless it is an [*Error]. Check should return when ctx ends.
	Check func(ctx context.Context, result *Result) error
}

// DefaultCaptureLimit is the default of [Request.CaptureLimit], in bytes.
const DefaultCaptureLimit = 1 << 20

// Start describes a run that is about to begin.
type Start struct {
	Runtime string // runtime token, for example "codex:local"
	Model   string // model that was asked for; empty when the runtime chooses
	Workdir string // absolute
	Command Command
	// Path is the absolute path of the executable.
	Path string
	// RunID is the ID that a [Recorder] gave the run, or empty.
	RunID string
	// UserConfig lists the files of the user's configuration of the CLI that exist,
	// whether they are used or left out.
	UserConfig []ConfigFile
}

// A ConfigFile is a file of the user's configuration of a CLI.
type ConfigFile struct {
	Path string `json:"path"` // absolute
	Used bool   `json:"used"`
	// Routes names the settings in a file that is left out that would change where
	// requests go or how they are paid for.
	Routes []string `json:"routes,omitempty"`
}

// String returns the path, and that the file is left out if it is.
func (f ConfigFile) String() string {
	if f.Used {
		return f.Path
	}
	return f.Path + " (left out)"
}

// A Command is one invocation of a runtime's executable, without a shell.
type Command struct {
	// Args are the arguments after the executable.
	Args []string

	// Env holds variables to set for this runtime, as "NAME=value". A NAME
	// without "=" removes the variable.
	Env []string

	// Stdin is the whole standard input; it is always closed after it.
	Stdin string

	// Files are passed to the agent as open descriptors, after those of the Setup.
	Files [][]byte
}

// A Formatter renders the events of one run as readable text.
type Formatter interface {
	// Append appends the text of e to dst and returns the extended slice. It
	// may keep state between calls but must not keep e.
	Append(dst []byte, e *Event) []byte
}
