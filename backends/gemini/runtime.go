// Package gemini runs the Gemini CLI of Google, npm package @google/gemini-cli.
//
// Importing it registers the runtime "gemini". Checked with version
// 0.61.0.
//
// # Executable
//
// gemini. Install it from https://geminicli.com/.
//
// # Options
//
// Each access selects an approval mode:
//
//   - read is plan. The model can read files, and write plans.
//   - write is auto_edit. Files in the workdir and the added directories can be edited.
//     A command runs only if it begins with a pattern of Request.AllowCommands, for
//     example "go test".
//   - full is yolo. Everything is allowed, and commands are not confined.
//
// With read and write, the tools that enter and leave plan mode are excluded: without a
// terminal, 0.61.0 approves its own plan and then everything.
//
// Settings in the private home of the run limit the turns, and the attempts of a model
// request to three instead of ten, unless the user's settings have another number.
// Reasoning effort and verbosity are not supported. A prompt has at most 3 MiB, because
// the CLI silently drops a longer one. The CLI replaces "@path" in a prompt by the
// content of the file.
//
// Attached images and PDFs of a run are "@path" after the prompt, which names files in the
// run's folder for temporary files. Sessions take images as parts of the message.
//
// # Sessions
//
// A session is a process of `gemini --acp`, which speaks the Agent Client Protocol, in a
// folder that the CLI does not trust. read is plan mode. write permits edits of files in
// the workdir and the added directories and passes on all other approval requests. full
// permits everything. A message that arrives during a turn becomes the next turn. A
// message that begins with "/" or "$" is preceded by a separate piece of text,
// "Message:", because the CLI would read it as a command. AGENTS.md precedes the first
// message. Context files of the repository with other names and the user's MCP servers
// are left out. With Request.TrustWorkspace, modes, instructions and settings are those
// of a run.
//
// # Project instructions
//
// By default, .gemini/settings.json and .env of the repository are left out, so nothing
// in the repository runs. A run is refused if there is a .gemini/.env in the workdir or
// above it, because the CLI always reads it. It is also refused if the repository's
// settings have advanced.ignoreLocalEnv with a value other than true, because the CLI
// trusts them when it starts slowly.
//
// The CLI finds AGENTS.md itself, from the repository root down to the workdir, and the
// user's context files (context.fileName, GEMINI.md by default). If this would not give
// each AGENTS.md exactly once, bus-agent delivers the text through the private home
// instead, except for those that it still reads under another name: a GEMINI.md that is a
// link to one. This happens when the files exceed 256 KiB, when a GEMINI.md imports or
// repeats one, or when the CLI would take another directory for the repository root.
// The AGENTS.md files below an imported one precede the prompt.
//
// With Request.TrustWorkspace, the CLI uses the repository's settings and environment
// files (GEMINI_CLI_TRUST_WORKSPACE). AGENTS.md is added to context.fileName in
// .gemini/settings.json of the workdir, and a block in .geminiignore hides the private
// homes from the agent. `bus-agent instructions clean` removes both.
//
// # Home and login
//
// Each run gets a private GEMINI_CLI_HOME below <workdir>/.gemini/bus, which is removed
// at its end. It has the user's settings with additions for the run, and links to
// logins, global context files, policies and .env in the user's home (an inherited
// GEMINI_CLI_HOME or HOME). The user's extensions, commands and skills are left out,
// and with Request.UserConfig off everything but the logins.
// Session files are kept in <workdir>/.gemini/bus/sessions, for resume.
//
// With `--env GEMINI_CLI_HOME=DIR` the CLI uses the home DIR unchanged. This needs
// access full. AGENTS.md then precedes the prompt, and a .env in the workdir or above it
// refuses the run unless advanced.ignoreLocalEnv is set in DIR.
//
// # Errors
//
// Exit code 41 and HTTP 401 and 403 are authentication failures, 429 is a quota failure.
// The CLI exits 0 on some failures, so only its result line counts. Without a model in
// the request, the model is known only at the end. After a lost connection the CLI
// silently repeats parts of the answer.
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
		UserConfig:    userConfig,
		TestedVersion: "0.61.0",
		Run: registry.Use{
			Options: registry.Options{
				Model:              true,
				AppendSystemPrompt: true,
				MCPServers:         true,
				Access:             agent.Accesses(),
				AllowCommands:      true,
				AllowTools:         true,
				DenyTools:          true,
				AddDirs:            true,
				Resume:             true,
				Continue:           true,
				MaxTurns:           true,
				Attachments:        append(agent.ImageTypes(), agent.MediaPDF),
				AttachmentFiles:    true,
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
		ReadingTools:  readingTools,
		PrivateTemp:   true,
		Session:       conversation(),
		Terminal:      interactive(),
		ExitFailure:   exitFailure,
		QuietStderr:   quietStderr,
		RetryStderr:   retryStderr,
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
func exitFailure(exit *agent.ExitError) agent.Failure {
	switch exit.Code {
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

// retry is in the line that Gemini CLI writes before it repeats a model request.
var retry = []byte("Retrying with backoff")

func retryStderr(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Attempt ")) && bytes.Contains(line, retry)
}

func quietStderr(line []byte) bool {
	for _, prefix := range noise {
		if bytes.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
