package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// An Invocation is a settled agent.Request: everything that one start of a CLI
// depends on. The runner makes one for each start and passes it by value. What it
// refers to must not be changed.
//
// Before [Use.Prepare] has run, Args and Env hold only what the caller gave, Files
// and Home are empty, and Prompt lacks the text before it.
type Invocation struct {
	// Token is the runtime token, Variant its part after the colon.
	Token   string
	Variant string

	// Executable is the absolute path of the runtime's executable.
	Executable string

	// Workdir is where the agent works. Root is the root of its repository, or Workdir
	// itself without a repository. Both are absolute.
	Workdir string
	Root    string

	// Repositories are the folders that the repositories around the workdir control: the
	// workdir, the topmost repository around it, and main worktrees. The user's home is
	// not one.
	Repositories []string

	// Home is that of the setup; see [Setup.Home].
	Home string

	// TempDir is the folder for temporary files of this start if Runtime.PrivateTemp
	// is set, or if it has the files of Attachments. It is removed at the end. It is empty in a dry run, and before anything
	// is written.
	TempDir string

	// Prompt is what the model gets: the rendered prompt, with the schema, the
	// instructions before it and the line break that keeps it from being a command.
	// In a session it is the first message as the caller gave it, or empty; the
	// session delivers it.
	Prompt string

	// Attachments are the files for the model that are not text, each of a media type that
	// Options.Attachments names. Prompt names them, and has the text of all others. In a
	// session they are those of the first message, which the session delivers.
	Attachments []Attachment

	// Model is empty if the runtime chooses. ReasoningEffort and Verbosity are
	// empty or words that Options names.
	Model           string
	ReasoningEffort agent.ReasoningEffort
	Verbosity       agent.Verbosity

	// AppendSystemPrompt is empty for none; see [agent.Request].
	AppendSystemPrompt string

	// MCPServers are those of the request, without variables. Commands are absolute paths.
	MCPServers []agent.MCPServer

	// AllowTools and DenyTools are those of the request; at most one of them has names.
	AllowTools []string
	DenyTools  []string

	// UserConfig is empty for the runtime's default.
	UserConfig agent.UserConfig

	// Access is never empty.
	Access        agent.Access
	AllowCommands []string
	AddDirs       []string // absolute

	// Resume is the ID of the session to continue. Continue requests the latest one of
	// Workdir; it is false once Prepare has found its ID.
	Resume   string
	Continue bool

	// MaxTurns limits the model turns; zero means no limit.
	MaxTurns int

	// Schema is the JSON Schema of the final answer; nil if the prompt has it.
	Schema json.RawMessage

	// Args are passed to the CLI unchanged: the arguments of the setup, then those of
	// the caller.
	Args []string

	// Environ is the agent's environment before the runtime's own variables; Env is
	// the part of it that the caller set.
	Environ []string
	Env     []string

	// Files are those of the setup; see [Setup.Files].
	Files [][]byte

	// TrustWorkspace, RequireInstructions and IdleTimeout are as in agent.Request. The
	// runner enforces IdleTimeout unless Options.IdleTimeout is set.
	TrustWorkspace      bool
	RequireInstructions bool
	IdleTimeout         time.Duration
}

// An Attachment is a file for the model.
type Attachment struct {
	agent.Attachment

	// Path is the absolute path of a file with the content, if Options.AttachmentFiles is
	// set. It is removed at the end of the run. In a dry run it is only its name.
	Path string
}

// HasInstructions reports whether inv continues a session, which got the project's
// instructions at its beginning. If they are required, that is not relied on: the session
// can have begun without bus-agent.
func (inv *Invocation) HasInstructions() bool {
	return (inv.Resume != "" || inv.Continue) && !inv.RequireInstructions
}

// Getenv returns the value that name has in Environ, or "".
func (inv *Invocation) Getenv(name string) string {
	value, _ := agent.LookupEnv(inv.Environ, name)
	return value
}

// CallerHome returns the absolute path of the home that the caller chose by setting
// the variable name in Env. One that is not a directory is an error of kind
// agent.ErrUsage.
func (inv *Invocation) CallerHome(name string) (string, error) {
	home, _ := agent.LookupEnv(inv.Env, name)
	if home == "" {
		return "", agent.Usagef("%s is empty; name a directory or leave the variable out", name)
	}
	abs := home
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(inv.Workdir, home)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", agent.Usagef("%s=%s is not a directory; make it first or leave the variable out", name, home)
	}
	return abs, nil
}

// With returns inv with the arguments, files, home and session of s. It does not change
// the prompt.
func (inv Invocation) With(s Setup) Invocation {
	args := inv.Args
	if s.CallerArgs != nil {
		args = s.CallerArgs
	}
	inv.Args = append(append(make([]string, 0, len(s.Args)+len(args)), s.Args...), args...)
	inv.Files, inv.Home = s.Files, s.Home
	if s.Resume != "" {
		inv.Resume, inv.Continue = s.Resume, false
	}
	return inv
}
