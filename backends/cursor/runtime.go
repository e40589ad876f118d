// Package cursor runs the Cursor CLI of Anysphere.
//
// Importing it registers the runtime "cursor". This runtime was not tested
// with the CLI: the facts come from the public documentation and from
// measurements by others with versions of early 2026.
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
// the sandbox really do is up to the CLI. It denies calls that would still
// request permission.
//
// The CLI takes a model by its name, resumes sessions and continues the last. It
// does not support reasoning effort, verbosity, limit of turns, added
// directories or list of allowed commands.
//
// The prompt is written to standard input. The CLI has no switch that keeps it
// from reading files a prompt names with "@".
//
// # Sessions
//
// A session is a process of `cursor-agent acp`, which speaks the Agent Client
// Protocol. read is the ask mode; write and full are the agent mode, in which
// write passes on every approval request, including those for file changes, and
// full accepts them. --sandbox and --force do not apply: the settings of the CLI
// decide what needs no approval. The model is one of those that the CLI offers in
// the session. A message that comes during a turn is answered next. The user must
// be logged in: otherwise the CLI is reported to wait silently, so the session
// fails after its timeout. Requests beyond the protocol (cursor/ask_question and
// the like) are answered with an error at once.
//
// # Project instructions
//
// The CLI reads AGENTS.md itself. It runs in the workdir, with the repository
// root as its workspace. Nothing is written. How much of a long AGENTS.md it
// takes is not documented; over 256 KiB in all there is a warning.
//
// --trust is always passed, as the CLI stops at an unknown directory otherwise,
// and with it the CLI runs the hooks and MCP servers of the repository. They
// cannot be left out, so a run without Request.TrustWorkspace is refused if there
// is a .cursor/hooks.json or .cursor/mcp.json in any directory from the
// repository root to the workdir, or a .claude/settings.json or
// .claude/settings.local.json with hooks, which the CLI takes too when the user
// has switched that on.
//
// # Home and login
//
// The user's home is used unchanged: the login of `cursor-agent login`, or
// CURSOR_API_KEY. A HOME inside the repository is an error unless
// Request.TrustWorkspace is set.
//
// # Errors
//
// A run without a result has failed, even if the CLI exits 0, as it does when
// it refuses a directory. If the CLI does not exit after its result, it is
// ended.
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
