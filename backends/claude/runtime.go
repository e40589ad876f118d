// Package claude runs Claude Code of Anthropic, npm package
// @anthropic-ai/claude-code.
//
// Importing it registers the runtime "claude". The facts are those of version
// 2.1.329.
//
// # Executable
//
// claude. Install it as
// https://github.com/anthropics/claude-code?tab=readme-ov-file#get-started says.
//
// # Options
//
// Access words are permission modes. read is dontAsk without the tools that edit
// files: commands that only read run, all others are denied. It is not plan mode, in
// which 2.1.329 lets a model judge commands and runs those it finds harmless, outside
// of the workdir too. write is acceptEdits: files in the workdir and the added
// directories can be edited, and commands that only read run; Claude Code has no
// sandbox, so any other command runs only when a pattern of Request.AllowCommands
// lets it, for example "go test *". full is bypassPermissions, which Claude Code
// refuses to root unless IS_SANDBOX=1 is set. Calls that would request permission are
// denied. Below full, the tools for worktrees and schedules, which outlive a run in
// every mode, are removed.
//
// Reasoning effort is passed on, minimal as low. Verbosity is unknown to Claude
// Code. The prompt has at most 10 MiB. Claude Code adds the content of a file to
// a prompt that mentions it as "@path".
//
// # Answers that follow a schema
//
// Claude Code takes a schema as one argument, lets the model answer with a tool of
// its own, StructuredOutput, and asks up to five times. Numbers go through
// JavaScript: integers beyond 2^53 lose their last digits. A schema that is not an object,
// is longer than 64 KiB, or has keywords beyond the common ones goes with the prompt.
//
// # Project instructions
//
// By default nothing that can run is read from the repository: its settings,
// hooks, MCP servers and skills are left out (--setting-sources user,
// --strict-mcp-config). As Claude Code then reads no project instructions
// either, the AGENTS.md files from the repository root down to the workdir, and
// after them CLAUDE.md, .claude/CLAUDE.md and CLAUDE.local.md of the same
// directories, are appended to the system prompt, 256 KiB at most, through an
// inherited descriptor. Of a CLAUDE.md only what is new is delivered: links to
// and copies of an AGENTS.md and "@AGENTS.md" lines are left out. Other imports
// stay as they are written. The user's own ~/.claude/CLAUDE.md is read by Claude
// Code itself.
//
// With Request.TrustWorkspace the repository's settings count and Claude Code
// reads CLAUDE.md itself, with imports; AGENTS.md is appended, and what would
// repeat it is excluded through --settings, into which the caller's own
// --settings are merged.
//
// # Home and login
//
// The user's home (~/.claude or CLAUDE_CONFIG_DIR) is used unchanged. Sessions are
// kept there too, so Request.Resume works for any session of the user and
// Request.Continue takes the latest of the workdir. A home inside the repository is
// an error unless Request.TrustWorkspace is set.
//
// # Errors
//
// A refused login (401, 403, not logged in) is an authentication failure and
// ends the run at its first retry; 429 is a quota failure. Retries are limited
// to three unless CLAUDE_CODE_MAX_RETRIES is set: the CLI's own ten take three
// minutes.
package claude

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "claude"

// promptBytes is the longest standard input Claude Code takes, less the line
// break that may go before the prompt.
const promptBytes = 10<<20 - 1

func init() { registry.Register(Runtime()) }

// Runtime returns the description of Claude Code.
func Runtime() registry.Runtime {
	return registry.Runtime{
		ID:            ID,
		Name:          "Claude Code",
		Executables:   []string{"claude"},
		InstallURL:    "https://github.com/anthropics/claude-code?tab=readme-ov-file#get-started",
		Provider:      "anthropic",
		TokenEnv:      []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		NestedEnv:     []string{"CLAUDECODE"},
		Home:          userHome,
		TestedVersion: "2.1.329",
		Run: registry.Use{
			Options: registry.Options{
				Model:         true,
				Efforts:       agent.Efforts(),
				Access:        agent.Accesses(),
				AllowCommands: true,
				AddDirs:       true,
				Resume:        true,
				Continue:      true,
				MaxTurns:      true,
				Schema:        takesSchema,
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
		Protected:     []string{".claude", ".mcp.json"},
		ReadingTools:  []string{"Read", "StructuredOutput", "ToolSearch", "WebSearch"},
		PrivateTemp:   true,
		Session:       conversation(),
		Terminal:      interactive(),
		Reads:         reads,
		Instructions: &registry.Instructions{
			MaxBytes: instructions.MaxBytes,
		},
	}
}
