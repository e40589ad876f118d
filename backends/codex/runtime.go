// Package codex runs the Codex CLI of OpenAI, npm package @openai/codex.
//
// Importing it registers the runtime "codex" and its variant "codex:local"
// (--oss with a local Ollama). Checked with version 0.171.0.
//
// # Executable
//
// codex. Install it from https://developers.openai.com/codex/cli/.
//
// # Options
//
// Each access selects a sandbox mode. read is read-only. write is workspace-write: the
// model and its commands can write in the workdir, the added directories and the
// private TMPDIR of the run, but not in /tmp. full is danger-full-access. Reasoning
// effort and verbosity are passed on. Request.MaxTurns and Request.AllowCommands are not
// supported; the sandbox confines every command.
//
// By default the user's config.toml is not read; a warning names it if it sets a
// provider, a base URL or an account. With Request.UserConfig on, the private home has
// a copy of it and links to .env, hooks.json and rules, and the user's AGENTS.md
// precedes those of the project. The lists of trusted projects and writable folders in
// config.toml are overridden. Files that config.toml names need absolute paths. With
// `--env CODEX_HOME=DIR` Codex uses the home DIR unchanged, with its settings unless
// Request.UserConfig is off. Its list of trusted projects is overridden too.
//
// # Project instructions
//
// Codex finds AGENTS.md itself, from the repository root down to the workdir. Its size
// limit is raised to the sum of the files, at most 256 KiB. If Codex would not read each
// AGENTS.md exactly once, bus-agent delivers the text through the private home instead.
// This happens when the files exceed the limit, when one is not a regular file or is a
// link to one above it, or when Codex would take another directory for the repository
// root. With a home of the caller and without Request.TrustWorkspace, the text precedes
// the prompt. As a rule of Codex, AGENTS.override.md replaces the AGENTS.md of its directory;
// this is a warning, and an error if AGENTS.md is required.
//
// # Home and login
//
// Each run gets a private CODEX_HOME below <workdir>/.codex/bus, which is removed at its
// end. It has a link to auth.json in the user's home (an inherited CODEX_HOME or
// ~/.codex). CODEX_API_KEY works as well. Session files are kept in
// <workdir>/.codex/bus/sessions, for resume. The databases of Codex are in the private
// home too, whatever CODEX_SQLITE_HOME and the user's sqlite_home say. If the workdir is
// not writable, the home is a temporary directory, and a warning reports that the session
// cannot be resumed.
//
// # Answers that follow a schema
//
// Codex passes a schema to the API in strict mode. This requires closed objects, whose
// properties are all required and which allow no others, and only a few keywords. Every
// other schema goes into the prompt, and so does every schema with codex:local or with a
// CODEX_HOME set by the caller.
//
// # Prompt
//
// A prompt has at most 1,048,576 characters. The model gets it as written, even if it
// begins with "-" or "/" or contains "@file". Codex removes a leading byte order mark.
// "$name" adds the text of the user's skill of that name after the prompt.
//
// Attached images go in as files (--image). Codex turns a GIF into a PNG.
//
// # Model and usage
//
// Codex reports neither the model nor the tokens of a single turn in its
// events; bus-agent reads both from the session file after the run. It reports the paths
// of changed files, and their diffs in sessions only.
//
// # Trust
//
// Settings, hooks, rules and MCP servers of the repository are used only with
// Request.TrustWorkspace, for that run. Otherwise a warning names them.
//
// # Errors
//
// Codex exits 1 on every failure, so the exit code does not identify the
// failure. An HTTP 401 ends the run at once; 429 and usage limits are quota
// errors.
package codex

import (
	"bytes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID; VariantLocal its variant with a local model.
const (
	ID           = "codex"
	VariantLocal = "local"
)

// promptRunes is the longest input that Codex accepts, in characters.
const promptRunes = 1 << 20

func init() { registry.Register(Runtime()) }

// Runtime returns the description of the Codex CLI.
func Runtime() registry.Runtime {
	return registry.Runtime{
		ID:            ID,
		Name:          "Codex CLI",
		Variants:      []string{VariantLocal},
		Executables:   []string{"codex"},
		InstallURL:    "https://developers.openai.com/codex/cli/",
		Provider:      "openai",
		TokenEnv:      []string{"CODEX_API_KEY"},
		ProviderEnv:   []string{"OPENAI_API_KEY", "OPENAI_ORG_ID"},
		Home:          userHome,
		UserConfig:    userConfig,
		TestedVersion: "0.171.0",
		Run: registry.Use{
			Options: registry.Options{
				Model:     true,
				Efforts:   agent.Efforts(),
				Verbosity: agent.Verbosities(),
				Access:    agent.Accesses(),
				AddDirs:   true,
				Resume:    true,
				Continue:  true,
				Schema:    takesSchema,

				Attachments:     agent.ImageTypes(),
				AttachmentFiles: true,

				AppendSystemPrompt: true,
				MCPServers:         true,
			},
			Check:   check,
			Prepare: prepare,
			Command: command,
		},
		PromptLimit:   registry.Limit{Runes: promptRunes},
		Decoder:       func() formatters.Decoder { return new(decoder) },
		Recognize:     recognize,
		ReportsResult: true,
		SessionUUIDs:  true,
		Protected:     []string{".codex", ".codex-plugin", ".agents"},
		ReadingTools:  []string{"web_search"},
		PrivateTemp:   true,
		QuietStderr:   quietStderr,
		Reads:         reads,
		Instructions: &registry.Instructions{
			MaxBytes: instructions.MaxBytes,
			Owned:    []instructions.Owned{{Home: homeParent}},
		},
		Session:   conversation(),
		Terminal:  interactive(),
		EmptyDirs: []string{".git", ".codex", ".agents", ".aws"},
	}
}

// quietStderr reports whether Codex writes the line in every run: that it reads the
// prompt, and that it leaves out the repository's .codex.
func quietStderr(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Reading prompt from stdin")) ||
		bytes.HasPrefix(line, []byte("Reading additional input from stdin")) ||
		bytes.Contains(line, []byte("Untrusted project-local configuration"))
}
