package gemini

import (
	"encoding/json"
	"path"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// reads lists what Gemini CLI reads by itself (0.61.0): context files also in each
// folder in which the model looks at a file. AGENTS.md in the workdir or above it
// is left to the CLI only where each is known to be a file of the repository.
func reads(r agent.Request) []instructions.Read {
	all := instructions.Reads(instructions.Upward,
		".gemini/skills/SKILL.md", ".gemini/skills/*/SKILL.md", ".agents/skills/SKILL.md", ".agents/skills/*/SKILL.md",
		".gemini/agents/*.md", ".gemini/commands/**/*.toml", ".gemini/system.md", settingsPath, ignoreBlock.Path)
	for _, name := range []string{".env", ".gemini/.env", ".gemini/policies/*.toml", ".gemini/extensions/*/gemini-extension.json"} {
		all = append(all, instructions.Read{Name: name, Trusted: true})
	}
	all = append(all, instructions.Read{Name: instructions.FileName, Where: instructions.Downward, Imports: true})
	settings, err := findUser(r).readSettings(r)
	if err != nil {
		return all // which prepare reports
	}
	for _, name := range settings.names {
		all = append(all, instructions.Read{Name: filepath.ToSlash(filepath.Clean(name)), Where: instructions.Everywhere, Imports: true})
	}
	return append(all, instructions.Reads(instructions.Upward, settings.ignoreFiles()...)...)
}

// ignoreFiles returns the names of further ignore files of a workdir.
func (s *settings) ignoreFiles() (names []string) {
	context, err := s.all.part("context")
	if err != nil {
		return nil
	}
	filtering, err := context.part("fileFiltering")
	if err != nil {
		return nil
	}
	var listed []string
	if json.Unmarshal(filtering["customIgnoreFilePaths"], &listed) != nil {
		return nil
	}
	for _, name := range listed {
		names = append(names, path.Clean(filepath.ToSlash(name)))
	}
	return names
}
