// Package cursor runs the Cursor CLI of Anysphere.
//
// Importing it registers the runtime "cursor". Nothing here was seen running:
// the facts are those of the public documentation and of what others have
// measured with versions of early 2026.
//
// # Executable
//
// cursor-agent, or agent, which is what newer installations call it. Install it
// as https://cursor.com/docs/cli/overview says. As "agent" is a name that any
// program may have, cursor-agent is tried first; where agent is something else,
// disable the runtime.
//
// # Options
//
// read is the ask mode, in which nothing is changed. write runs commands in the
// CLI's own sandbox and edits files without asking; full is the same without the
// sandbox. The repository's .cursor/cli.json can forbid commands and
// .cursor/sandbox.json can change what the sandbox lets through; what they and
// the sandbox really do is up to the CLI. What would still ask for permission is
// denied by it.
//
// The CLI takes a model by its name, resumes sessions and continues the last. It
// knows no reasoning effort, verbosity, limit of turns, added directories or
// list of allowed commands.
//
// The prompt is written to standard input. The CLI has no switch that keeps it
// from reading files a prompt names with "@".
//
// # Sessions
//
// A session is a process of `cursor-agent acp`, which speaks the Agent Client
// Protocol. read is the ask mode; write and full are the agent mode, in which
// write passes on whatever the CLI asks for, file changes included, and full
// permits it. --sandbox and --force do not apply: what is not asked for is
// up to the settings of the CLI. The model is one of those that the CLI offers in
// the session. A message that comes during a turn is answered next. The login has
// to be there: without one the CLI was reported to wait for it without a word, so
// a session is given up after its timeout. What the CLI asks beyond the protocol
// (cursor/ask_question and the like) is answered with an error at once.
//
// # Project instructions
//
// The CLI reads AGENTS.md itself. It runs in the workdir, with the repository
// root as its workspace. Nothing is written. How much of a long AGENTS.md it
// takes is not documented; over 256 KiB in all there is a warning.
//
// --trust is always passed, as the CLI stops at an unknown directory otherwise,
// and with it the CLI runs the hooks and MCP servers of the repository. There is
// no way to leave them out, so a run is refused, unless
// Request.TrustWorkspace, where there is a .cursor/hooks.json or .cursor/mcp.json
// in any directory from the repository root to the workdir, or a
// .claude/settings.json or .claude/settings.local.json with hooks, which the CLI
// takes too when the user has switched that on.
//
// # Home and login
//
// The user's own, as it is: the login of `cursor-agent login`, or
// CURSOR_API_KEY. A HOME inside the repository refuses the run, unless
// Request.TrustWorkspace.
//
// # Errors
//
// A run without a result has failed, also when the CLI exits 0, as it does when
// it refuses a directory. It may not exit after its result; then it is ended.
package cursor

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "cursor"

func init() { registry.Register(Runtime()) }

// Runtime returns the description of the Cursor CLI.
func Runtime() registry.Runtime {
	return registry.Runtime{
		ID:          ID,
		Name:        "Cursor CLI",
		Executables: []string{"cursor-agent", "agent"},
		InstallURL:  "https://cursor.com/docs/cli/overview",
		Home:        userHome,
		TokenEnv:    []string{"CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"},
		Run: registry.Use{
			Options: registry.Options{
				Model:    true,
				Access:   agent.Accesses(),
				Resume:   true,
				Continue: true,
			},
			SlashCommands: true,
			Prepare:       prepare,
			Command:       command,
		},
		Decoder:       func() formatters.Decoder { return new(decoder) },
		Recognize:     recognize,
		ReportsResult: true,
		Protected:     []string{".cursor"},
		ReadingTools:  []string{"grep", "ls", "read"},
		PrivateTemp:   true,
		Session:       conversation(),
		Terminal:      interactive(),
		Reads:         reads,
		Instructions: &registry.Instructions{
			MaxBytes: instructions.MaxBytes,
		},
	}
}
