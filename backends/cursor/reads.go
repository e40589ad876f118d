package cursor

import (
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// reads lists the files that the CLI reads by itself, by its documentation.
func reads(registry.Invocation) []instructions.Read {
	contexts := instructions.Reads(instructions.Everywhere,
		instructions.FileName, "CLAUDE.md", "CLAUDE.local.md", ".cursorrules")
	contexts = append(contexts, instructions.Read{Name: ".cursor/rules/**/*", Where: instructions.Everywhere, Imports: true})
	return append(contexts, instructions.Reads(instructions.Upward,
		".cursor/cli.json", ".cursor/hooks.json", ".cursor/mcp.json",
		".cursor/commands/**/*.md", ".cursor/agents/**/*.md", ".cursor/skills/**/SKILL.md",
		".claude/commands/**/*.md", ".claude/agents/**/*.md", ".claude/skills/**/SKILL.md", ".agents/skills/**/SKILL.md",
		".cursorignore", ".cursorindexingignore")...)
}
