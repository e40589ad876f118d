package claude

import (
	"slices"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// reads lists the files that Claude Code reads by itself (2.1.332). Without trust it
// uses only the user's settings, and reads no context files of the repository.
func reads(registry.Invocation) []instructions.Read {
	trusted := slices.Concat(
		instructions.Reads(instructions.Everywhere, memoryNames...),
		instructions.Reads(instructions.Everywhere, instructions.FileName, ".claude/rules/**/*.md"))
	for i := range trusted {
		trusted[i].Imports = true
	}
	trusted = append(trusted, instructions.Reads(instructions.Everywhere,
		".claude/skills/*/SKILL.md", ".claude/commands/**/*.md", ".claude/agents/**/*.md",
		".claude/output-styles/*.md", ".claude/workflows/*",
		".claude/settings.json", ".claude/settings.local.json", ".mcp.json")...)
	for i := range trusted {
		trusted[i].Trusted = true
	}
	return append(trusted, instructions.Reads(instructions.Upward, ".claude/scheduled_tasks.json", ".claude/loop.md")...)
}
