// Package cursor runs the Cursor CLI of Anysphere.
//
// Importing it registers the runtime "cursor". This runtime was not tested
// with the CLI: the facts come from the public documentation and from
// measurements by others with versions of early 2026.
//
// # Executable
//
// cursor-agent, or agent in newer installations. To install it, see
// https://cursor.com/docs/cli/overview. cursor-agent is tried first, because other
// programs can be named agent. If agent is another program, disable the runtime.
//
// # Options
//
// read is ask mode, which changes nothing. write edits files and runs commands in the
// CLI's sandbox without a request. full is the same without the sandbox. The CLI denies
// calls that would still request permission. In the repository, .cursor/cli.json can
// forbid commands, and .cursor/sandbox.json can change what the sandbox permits; the
// effect of both was not tested.
//
// The model is passed on by name. Sessions can be resumed, and the last one continued.
// Reasoning effort, verbosity, a limit of turns, added directories and allowed commands
// are not supported.
//
// The prompt is written to standard input. The CLI always reads files that a prompt names
// with "@".
//
// # Sessions
//
// A session is a process of `cursor-agent acp`, which speaks the Agent Client
// Protocol. read is ask mode; write and full are agent mode. write passes on every
// approval request, including those for file changes; full accepts them. --sandbox and
// --force do not apply: the settings of the CLI decide what needs approval. The model
// must be one that the CLI offers in the session. A message that arrives during a turn
// becomes the next turn. The user must be logged in: otherwise the CLI is reported to
// wait silently, and the session fails after its timeout. Requests beyond the protocol,
// such as cursor/ask_question, get an error at once.
//
// # Project instructions
//
// The CLI reads AGENTS.md itself. It runs in the workdir, with the repository root as
// its workspace. Nothing is written. How much of a long AGENTS.md it reads is not
// documented; more than 256 KiB in all is a warning.
//
// --trust is always passed, because the CLI otherwise stops at an unknown directory. With
// it, the CLI runs the hooks and MCP servers of the repository, which cannot be turned
// off. Without Request.TrustWorkspace a run is therefore refused if any directory from
// the repository root to the workdir has
//
//   - a .cursor/hooks.json or .cursor/mcp.json, or
//   - a .claude/settings.json or .claude/settings.local.json with hooks, which the CLI
//     runs if the user has turned that on.
//
// # Home and login
//
// The user's home is used unchanged: the login of `cursor-agent login`, or
// CURSOR_API_KEY. A HOME inside the repository is an error unless
// Request.TrustWorkspace is set.
//
// # Errors
//
// A run without a result has failed, even if the CLI exits 0, as it does when it refuses
// a directory. A CLI that does not exit after its result is ended.
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
		UserConfig: registry.UserConfig{Files: func(inv registry.Invocation) []agent.ConfigFile {
			return registry.ConfigFiles(inv.UserHome(userHome), true, "cli-config.json")
		}},
		TokenEnv: []string{"CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"},
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
