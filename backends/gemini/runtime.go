// Package gemini runs the Gemini CLI of Google, npm package @google/gemini-cli.
//
// Importing it registers the runtime "gemini". The facts are those of version
// 0.61.0.
//
// # Executable
//
// gemini. Install it from https://geminicli.com/.
//
// # Options
//
// Access words are approval modes. read is plan: the model can read, and write plans.
// write is auto_edit: files in the workdir and the added directories can be edited;
// commands cannot be run, except those a pattern of Request.AllowCommands begins
// with, for example "go test". full is yolo: everything is allowed, and commands are
// not confined. Below full the tools that enter and leave plan mode are excluded:
// without a terminal 0.61.0 approves its own plan and then everything. The limit of
// turns is a setting of the run's private home, and so is that a model request is
// made three times, not ten, unless the user's settings say otherwise. Gemini CLI
// takes neither reasoning effort nor verbosity. The prompt has at most 3 MiB; the CLI
// silently drops longer ones. It replaces "@path" in a prompt by the content of the
// file.
//
// # Sessions
//
// A session is a process of `gemini --acp`, which speaks the Agent Client
// Protocol, in a folder that the CLI does not trust. read is its plan mode; write
// permits edits of files in the workdir and the added directories and passes on
// all other approval requests; full permits everything. A message that comes
// during a turn is answered next. One that begins with "/" or "$" is sent after a
// separate piece of text, "Message:", because the CLI would take it for a command.
// AGENTS.md goes before the first message; context files of the repository with
// other names and the user's MCP servers are left out. With Request.TrustWorkspace
// modes, instructions and settings are those of a run.
//
// # Project instructions
//
// By default nothing that can run is read from the repository: its
// .gemini/settings.json and .env are left out, and a .gemini/.env in the workdir
// or above it, which cannot be switched off, refuses the run. So do settings of
// the repository with advanced.ignoreLocalEnv other than true: the CLI takes them
// for trusted when it starts slowly. AGENTS.md is found by the CLI itself, from
// the repository root down to the workdir, along with the user's own context files
// (context.fileName, GEMINI.md if none). Where that would not give each AGENTS.md
// exactly once (over 256 KiB, a GEMINI.md that imports or repeats it, a false
// repository root), bus-agent delivers the text through the private home instead;
// what is inside of an imported one goes before the prompt.
//
// With Request.TrustWorkspace the repository's settings and environment files
// count (GEMINI_CLI_TRUST_WORKSPACE), AGENTS.md is added to context.fileName in
// .gemini/settings.json of the workdir, and .geminiignore gets a block that
// keeps the private homes out of what the agent scans. `bus-agent instructions
// clean` removes both.
//
// # Home and login
//
// Each run gets a fresh GEMINI_CLI_HOME below <workdir>/.gemini/bus, removed at
// its end. It holds the user's settings with what the run needs; logins, global
// context files, policies and .env are linked in from the user's home (an
// inherited GEMINI_CLI_HOME or HOME). Extensions, commands and skills of the
// user are left out. Session files are kept in <workdir>/.gemini/bus/sessions,
// for resume. `--env GEMINI_CLI_HOME=DIR` runs with the home DIR as it is, with
// access full alone; AGENTS.md is then put before the prompt, and a .env in the
// workdir or above it refuses the run unless the settings in DIR keep it out with
// advanced.ignoreLocalEnv.
//
// # Errors
//
// Exit code 41 and HTTP 401 and 403 are authentication failures, 429 is a quota
// failure. The CLI exits 0 on some failures, so only its result line counts. If
// the request names no model, the model is known only at the end. After a lost
// connection the CLI silently repeats parts of the answer.
package gemini

import (
	"bytes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "gemini"

// promptBytes is well below the 8 MiB at which Gemini CLI cuts its input and
// about what its models take.
const promptBytes = 3 << 20

func init() { registry.Register(Runtime()) }

// Runtime returns the description of the Gemini CLI.
func Runtime() registry.Runtime {
	return registry.Runtime{
		ID:            ID,
		Name:          "Gemini CLI",
		Executables:   []string{"gemini"},
		InstallURL:    "https://geminicli.com/",
		Provider:      "gcp.gen_ai",
		TokenEnv:      []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Home:          userHome,
		TestedVersion: "0.61.0",
		Run: registry.Use{
			Options: registry.Options{
				Model:         true,
				Access:        agent.Accesses(),
				AllowCommands: true,
				AddDirs:       true,
				Resume:        true,
				Continue:      true,
				MaxTurns:      true,
			},
			SlashCommands: true,
			Check:         check,
			Prepare:       prepare,
			Command:       command,
		},
		PromptLimit:   registry.Limit{Bytes: promptBytes},
		Decoder:       func() formatters.Decoder { return new(decoder) },
		Recognize:     recognize,
		ReportsResult: true,
		SessionUUIDs:  true,
		Protected:     []string{".gemini"},
		ReadingTools:  []string{"glob", "google_web_search", "grep_search", "list_directory", "read_file", "update_topic", "write_todos"},
		PrivateTemp:   true,
		Session:       conversation(),
		Terminal:      interactive(),
		ExitFailure:   exitFailure,
		QuietStderr:   quietStderr,
		Reads:         reads,
		Instructions: &registry.Instructions{
			MaxBytes: instructions.MaxBytes,
			Owned: []instructions.Owned{{
				Home:  homeParent,
				JSON:  &instructions.JSONList{Path: settingsPath, Keys: contextKeys, Value: instructions.FileName},
				Block: &ignoreBlock,
			}},
		},
	}
}

// exitFailure knows the exit codes with a meaning. Those of API errors are the
// HTTP status modulo 256.
func exitFailure(code int) agent.Failure {
	switch code {
	case 41, 401 % 256, 403 % 256:
		return agent.FailureAuthentication
	case 429 % 256:
		return agent.FailureQuota
	}
	return ""
}

// noise begins the lines Gemini CLI writes at every run without a terminal.
var noise = [][]byte{
	[]byte("Warning: 256-color support"),
	[]byte("Ripgrep is not available"),
	[]byte("[STARTUP] "),
	[]byte("YOLO mode is enabled"),
	[]byte("Warning: --allowed-tools"),
	[]byte("Warning: tools.exclude in settings.json is deprecated"),
}

func quietStderr(line []byte) bool {
	for _, prefix := range noise {
		if bytes.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
