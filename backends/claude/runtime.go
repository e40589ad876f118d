// Package claude runs Claude Code of Anthropic, npm package
// @anthropic-ai/claude-code.
//
// Importing it registers the runtime "claude". Checked with version
// 2.1.332.
//
// # Executable
//
// claude. To install it, see
// https://github.com/anthropics/claude-code?tab=readme-ov-file#get-started.
//
// # Options
//
// Each access selects a permission mode:
//
//   - read is dontAsk without the tools that edit files. Commands that only read run;
//     all others are denied. Plan mode is not used: there, 2.1.329 lets a model judge
//     commands and runs those it finds harmless, even outside the workdir.
//   - write is acceptEdits. Files in the workdir and the added directories can be
//     edited, and commands that only read run. Claude Code has no sandbox, so any other
//     command runs only if a pattern of Request.AllowCommands allows it, for example
//     "go test *".
//   - full is bypassPermissions. Claude Code refuses it to root unless IS_SANDBOX=1 is
//     set.
//
// Calls that would request permission are denied. With read and write, the tools for
// worktrees and schedules are removed, because what they make outlives the run.
//
// Reasoning effort is passed on, with minimal as low. Verbosity is not supported. A
// prompt has at most 10 MiB. Claude Code adds the content of a file to a prompt that
// mentions it as "@path".
//
// Attached images and PDFs are parts of the message: the prompt is then a line of JSON
// (--input-format stream-json).
//
// # Answers that follow a schema
//
// Claude Code takes a schema as an argument. The model answers by calling the tool
// StructuredOutput, and gets up to five attempts. Numbers pass through JavaScript, so
// integers beyond 2^53 are rounded. A schema goes into the prompt instead if its type
// is not object, if it is longer than 64 KiB, or if it has an uncommon keyword.
//
// # Project instructions
//
// By default, the repository's settings, hooks, MCP servers and skills are left out
// (--setting-sources user, --strict-mcp-config), so nothing in the repository runs.
// Claude Code then reads no project instructions either. bus-agent appends them to the
// system prompt through an inherited descriptor, at most 256 KiB: first the AGENTS.md
// files from the repository root down to the workdir, then CLAUDE.md,
// .claude/CLAUDE.md and CLAUDE.local.md of the same directories. A CLAUDE.md that is a
// link to or a copy of an AGENTS.md is left out, and so are "@AGENTS.md" lines. Other
// imports are not expanded. Claude Code itself reads the user's ~/.claude/CLAUDE.md.
//
// With Request.TrustWorkspace, the repository's settings are used, and Claude Code
// reads CLAUDE.md itself and expands its imports. AGENTS.md is appended to the system
// prompt. Files that would repeat it are excluded through --settings, which includes
// the caller's --settings.
//
// # Home and login
//
// The user's home (~/.claude or CLAUDE_CONFIG_DIR) is used unchanged; with
// Request.UserConfig off, its settings.json and CLAUDE.md are left out. It also has the
// session files, so Request.Resume works for every session of the user, and
// Request.Continue resumes the latest one of the workdir. A home inside the repository
// is an error unless Request.TrustWorkspace is set.
//
// # Errors
//
// A refused login (401, 403, not logged in) is an authentication failure and ends the
// run at the first retry. A 429 is a quota failure. Retries are limited to three unless
// CLAUDE_CODE_MAX_RETRIES is set: the ten of the CLI take three minutes.
package claude

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "claude"

// promptBytes is the longest standard input that Claude Code accepts, less one byte
// for a line break before the prompt.
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
		UserConfig:    userConfig,
		TestedVersion: "2.1.332",
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
				Attachments:   attachments(),
				Schema:        takesSchema,

				AppendSystemPrompt: true,
				MCPServers:         true,
				AllowTools:         true,
				DenyTools:          true,
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
		Protected:     []string{".claude", ".claude-plugin", ".mcp.json"},
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
