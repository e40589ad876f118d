// Package codex runs the Codex CLI of OpenAI, npm package @openai/codex.
//
// Importing it registers the runtime "codex" and its variant "codex:local"
// (--oss with a local Ollama). The facts are those of version 0.169.0.
//
// # Executable
//
// codex. Install it from https://developers.openai.com/codex/cli/.
//
// # Options
//
// Access words are sandbox modes: read is read-only, write is workspace-write
// (the workdir, the added directories and the run's own TMPDIR can be written,
// commands run confined to them, /tmp cannot be written), full is
// danger-full-access. Codex takes reasoning effort and verbosity. It has no
// limit of turns and no list of allowed commands: its sandbox confines all.
//
// The user's config.toml is not read. `--env CODEX_HOME=DIR` runs Codex with
// the home DIR as it is, settings included.
//
// # Project instructions
//
// Codex finds AGENTS.md itself, from the repository root down to the workdir; the
// size limit is raised to the sum of the files, at most 256 KiB. Where its own
// discovery would not give each AGENTS.md exactly once (over the limit, a file
// that is not regular or is another name of one above it, a false repository
// root), bus-agent delivers the text through the private home instead. A
// directory's AGENTS.override.md replaces its AGENTS.md; that is Codex's own
// rule. A warning says so, and where AGENTS.md is required the run is refused.
//
// # Home and login
//
// Each run gets a fresh CODEX_HOME below <workdir>/.codex/bus, removed at its
// end; auth.json is linked in from the user's home (an inherited CODEX_HOME or
// ~/.codex). CODEX_API_KEY works as well. Session files are kept in
// <workdir>/.codex/bus/sessions, for resume. Where nothing can be written in the
// workdir the home is a temporary one: a warning says so, and that the session
// cannot be resumed.
//
// # Answers that follow a schema
//
// Codex hands a schema to the API as a strict one, which takes only closed objects:
// all properties required, no others allowed, and no keywords beyond a few. Every
// other schema goes with the prompt, as it does for codex:local and with a CODEX_HOME
// set by the caller.
//
// # Prompt
//
// At most 1,048,576 characters. It arrives as written, also when it begins with
// "-" or "/" or holds "@file"; a leading byte order mark is stripped by Codex,
// and "$name" of a skill the user has adds that skill's text after the prompt.
//
// # Model and usage
//
// Codex reports neither the model nor the tokens of a single turn in its
// events; bus-agent reads both from the session file after the run.
//
// # Trust
//
// Settings, hooks, rules and MCP servers of the repository are not used, and a
// warning names them. With Request.TrustWorkspace they are used, for that run
// only.
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

// promptRunes is the longest input Codex takes, in characters.
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
		TestedVersion: "0.169.0",
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
			},
			Prepare: prepare,
			Command: command,
		},
		PromptLimit:   registry.Limit{Runes: promptRunes},
		Decoder:       func() formatters.Decoder { return new(decoder) },
		Recognize:     recognize,
		ReportsResult: true,
		SessionUUIDs:  true,
		Protected:     []string{".codex", ".agents"},
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

// quietStderr reports the lines Codex writes at every run of ours: that it
// reads the prompt, and that it leaves out the repository's own .codex.
func quietStderr(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Reading prompt from stdin")) ||
		bytes.HasPrefix(line, []byte("Reading additional input from stdin")) ||
		bytes.Contains(line, []byte("Untrusted project-local configuration"))
}
