package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
)

// A Runtime describes one agent CLI: facts and behaviour. A nil or empty field
// means that the runtime cannot do that. A registered Runtime is never changed;
// its functions may be called by several goroutines at once.
type Runtime struct {
	// ID is the name users type: [a-z][a-z0-9-]*.
	ID string

	// Name is the name that users see, for example "Codex CLI".
	Name string

	// Variants are further ways to run it, selected as "ID:variant". A variant
	// is available when the runtime is, and is not listed separately.
	Variants []string

	// Executables are tried in order; they are names, not paths.
	Executables []string

	// LastChoice says that automatic selection considers it after all runtimes of which
	// this is not set, unless the user's order names it. It is for catalogues of many
	// runtimes, some with executables of common names.
	LastChoice bool

	// NamedOnly says that automatic selection never takes it: it is used only if the user
	// or the caller names it. It is for a runtime that has no runs, or whose CLI was never
	// verified.
	NamedOnly bool

	// InstallURL is where users can get it.
	InstallURL string

	// Provider is the provider of its model unless the user's settings name another,
	// as the OpenTelemetry GenAI conventions spell it, for example "openai". Empty
	// if unknown.
	Provider string

	// TokenEnv names the variables that can hold a credential for it.
	TokenEnv []string

	// TokenOnly says that its CLI has no login: its only credential is a token in a
	// variable.
	TokenOnly bool

	// ProviderEnv names further variables of an account with its provider. A recorded
	// run of a runtime that has TokenEnv or ProviderEnv does not get those of others.
	ProviderEnv []string

	// NestedEnv names the variables that its CLI sets for its tools and that would
	// keep an agent started by such a tool from working. Recorded runs do not get
	// them.
	NestedEnv []string

	// UserConfig describes the user's own configuration of its CLI.
	UserConfig UserConfig

	// Home is where its CLI keeps its state and logins for a user. With Home.Env a
	// session can use the folder of another account, and the CLI gets a temporary one
	// when it is run for its version.
	Home Home

	// TestedVersion is the version of the CLI that was tested, as the CLI prints
	// it.
	TestedVersion string

	// Run describes a single run with a prompt; without Run.Command it cannot run once.
	Run Use

	// PromptLimit bounds the prompt; a longer one is a usage error before
	// anything starts.
	PromptLimit Limit

	// Decoder makes the decoder of one run. Required.
	Decoder func() formatters.Decoder

	// Formatter makes the renderer of one run; nil means formatters.Text.
	Formatter func() agent.Formatter

	// Recognize reports whether line can only come from this runtime. It is
	// called with the first lines of an output of unknown origin.
	Recognize func(line []byte) bool

	// ReportsResult says that a successful run always ends with a
	// agent.KindResult event, so a run without one has failed.
	ReportsResult bool

	// ExitFailure classifies a failure by the exit code, the agent's reason or the last
	// lines of standard error. It is called only when a run failed, or a session could
	// not be opened, and no event gave the class. It may be nil.
	ExitFailure func(exit *agent.ExitError) agent.Failure

	// AnswerFailure reports whether a run that ended as a success with this final answer
	// has failed all the same, and the class of that failure. It is for CLIs that print
	// an error as their answer, or nothing. The answer is empty only if the run has no
	// text and no tool call. It may be nil.
	AnswerFailure func(answer string) (failure agent.Failure, failed bool)

	// ReadingTools names the tools of its events that never change anything. A run
	// that has called any other tool is not repeated with another runtime.
	ReadingTools []string

	// QuietStderr reports whether the CLI writes a line of standard error only because
	// of how bus-agent runs it. Such lines are not shown to the user.
	QuietStderr func(line []byte) bool

	// RetryStderr reports whether a line of standard error says that a model request
	// has failed and is repeated. It is for CLIs whose output has no event for that.
	RetryStderr func(line []byte) bool

	// Reads returns the files that its CLI reads by itself, as data: context files,
	// skills, ignore files. Before anything is written the runner checks that they
	// are regular files inside the repository, see
	// instructions.Chain.CheckReads. Reads is called before Prepare and writes nothing.
	// Nil means that the CLI reads only those of git.
	Reads func(Invocation) []instructions.Read

	// Instructions delivers AGENTS.md; nil means that the runtime cannot take
	// instructions.
	Instructions *Instructions

	// Session holds sessions of many turns; nil means that it cannot.
	Session *Session

	// Terminal runs the interactive CLI in a terminal; nil means that it cannot.
	Terminal *Terminal

	// Executed names files and folders, relative to the workdir and each directory above it
	// but the user's home, with what its CLI runs and no option of it leaves out. A run that
	// does not trust the workspace is refused if one exists. They are protected too.
	Executed []string

	// Protected names the files and folders, at any place in a repository, with what
	// its CLI runs: settings, hooks, private homes. They are slash-separated. In sessions of every runtime an
	// agent with write access needs an approval to change them.
	Protected []string

	// SessionUUIDs says that the IDs of its sessions are UUIDs. A request to resume
	// any other is refused: the CLI can take it for a path or for words to search.
	SessionUUIDs bool

	// PrivateTemp gives each run a private TMPDIR, removed at its end. It is
	// for CLIs that leave files there, or whose sandbox lets tools write there.
	PrivateTemp bool

	// EmptyDirs names empty directories that the CLI leaves in its workdir.
	// Those that were absent before the run and are empty after it are removed.
	EmptyDirs []string
}

// A UserConfig describes the user's own configuration of a CLI. The zero UserConfig is
// that of a CLI that always uses it, from files that are not known.
type UserConfig struct {
	// Modes lists the values of Invocation.UserConfig that are supported, the
	// default first. Empty means agent.UserConfigOn alone.
	Modes []agent.UserConfig

	// Files returns the files of it that exist, and whether a start of inv uses them.
	// It is called before Prepare and writes nothing. Nil means none.
	Files func(inv Invocation) []agent.ConfigFile
}

// Takes reports whether mode is supported.
func (c UserConfig) Takes(mode agent.UserConfig) bool {
	return slices.Contains(c.Modes, mode) || len(c.Modes) == 0 && mode == agent.UserConfigOn
}

// ConfigFiles returns those of the named files below dir, slash-separated, that exist,
// as the value of [UserConfig.Files].
func ConfigFiles(dir string, used bool, names ...string) (files []agent.ConfigFile) {
	if dir == "" {
		return nil
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			files = append(files, agent.ConfigFile{Path: file, Used: used})
		}
	}
	return files
}

// Options are the fields of a request that a Use supports.
type Options struct {
	Model     bool
	Efforts   []agent.ReasoningEffort
	Verbosity []agent.Verbosity
	Access    []agent.Access

	// AppendSystemPrompt says that Prepare or Command delivers it, as text of the system
	// or the developer and not of the user.
	AppendSystemPrompt bool

	// MCPServers says that Prepare, Command or the engine delivers them.
	MCPServers bool

	// AllowTools and DenyTools say that Prepare or Command delivers the list. The CLI then
	// offers its model no tool that the list leaves out, and permits no call that it would
	// not permit without the list.
	AllowTools bool
	DenyTools  bool

	AllowCommands bool
	AddDirs       bool
	Resume        bool
	Continue      bool
	MaxTurns      bool

	// IdleTimeout says that the CLI enforces Invocation.IdleTimeout and then fails with
	// agent.FailureIdleTimeout. It is for CLIs that can wait without output for a
	// reason, and applies only to runs. If false, the runner ends a run without
	// progress.
	IdleTimeout bool

	// Attachments are the media types of the files that the CLI passes to its model, see
	// Invocation.Attachments, besides text, which goes into the prompt. In sessions, the
	// engine must be an engine.Attacher.
	Attachments []string

	// AttachmentFiles says that the CLI reads attachments from files: Attachment.Path is
	// set. It applies only to runs.
	AttachmentFiles bool

	// Schema reports whether Invocation.Schema can be passed on; it is called before
	// Prepare. If not, or if Schema is nil, the runner puts the schema into the
	// prompt and Invocation.Schema is nil. See SchemaRules.
	Schema func(inv Invocation) bool
}

// A Limit bounds a text. Zero means no bound.
type Limit struct {
	Bytes int
	Runes int
}

// Instructions describes how a runtime gets the project's AGENTS.md.
type Instructions struct {
	// MaxBytes limits the text of AGENTS.md files that the runtime gets.
	MaxBytes int

	// Owned lists what Prepare may leave in the workdir between runs, for `bus-agent
	// instructions show` and `clean`.
	Owned []instructions.Owned
}

// NewDecoder returns the decoder for one run.
func (r Runtime) NewDecoder() formatters.Decoder { return r.Decoder() }

// NewFormatter returns the text renderer for one run.
func (r Runtime) NewFormatter() agent.Formatter {
	if r.Formatter != nil {
		return r.Formatter()
	}
	return formatters.Text()
}

var errID = errors.New("the ID must match [a-z][a-z0-9-]*")

// Check returns why r cannot be registered; nil if it can.
func (r Runtime) Check() error {
	switch {
	case !ValidID(r.ID):
		return errID
	case r.Name == "":
		return errors.New("no Name is set")
	case len(r.Executables) == 0:
		return errors.New("no Executables are named")
	case r.InstallURL == "":
		return errors.New("no InstallURL is set")
	case r.Run.Command == nil && r.Session == nil && r.Terminal == nil:
		return errors.New("Run.Command is nil, and so are Session and Terminal")
	case r.Decoder == nil:
		return errors.New("no Decoder is set")
	case r.Session != nil && (r.Session.Command == nil || r.Session.Engine == nil):
		return errors.New("Session.Command or Session.Engine is nil")
	case r.Terminal != nil && (r.Terminal.Command == nil || !r.Terminal.Resume.valid()):
		return errors.New("Terminal.Command is nil or Terminal.Resume is unknown")
	case r.Terminal != nil && r.Terminal.Options.Resume != (r.Terminal.Resume != ResumeNone):
		return errors.New("Terminal.Options.Resume and Terminal.Resume contradict each other")
	}
	for i, v := range r.Variants {
		if !ValidID(v) {
			return fmt.Errorf("the variant %q must match [a-z][a-z0-9-]*", v)
		}
		if slices.Contains(r.Variants[:i], v) {
			return fmt.Errorf("the variant %q is listed twice", v)
		}
	}
	for _, name := range r.Executables {
		if name == "" || strings.ContainsAny(name, "/\\\x00") {
			return fmt.Errorf("the executable %q must be a plain name", name)
		}
	}
	return nil
}

// ValidID reports whether s has the form of a runtime's ID: [a-z][a-z0-9-]*.
func ValidID(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
