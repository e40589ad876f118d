package gemini

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// reads lists the files that Gemini CLI reads by itself (0.61.0), context files also in
// each folder in which the model reads a file. The CLI reads AGENTS.md in the workdir or
// above it only if each is known to be a file of the repository.
func reads(inv registry.Invocation) []instructions.Read {
	all := instructions.Reads(instructions.Upward,
		".gemini/skills/SKILL.md", ".gemini/skills/*/SKILL.md", ".agents/skills/SKILL.md", ".agents/skills/*/SKILL.md",
		".gemini/agents/*.md", ".gemini/commands/**/*.toml", ".gemini/system.md", settingsPath, ignoreBlock.Path)
	for _, name := range []string{".env", ".gemini/.env", ".gemini/policies/*.toml", ".gemini/extensions/*/gemini-extension.json"} {
		all = append(all, instructions.Read{Name: name, Trusted: true})
	}
	all = append(all, instructions.Read{Name: instructions.FileName, Where: instructions.Downward, Imports: true},
		instructions.Read{Name: privatePrefix + strings.Repeat("[0-9a-f]", 16) + ".md", Where: instructions.Everywhere, Imports: true})
	if inv.AppendSystemPrompt != "" {
		all = append(all, instructions.Read{Name: systemPrefix + strings.Repeat("[0-9a-f]", 16) + ".md", Where: instructions.Everywhere, Imports: true})
	}
	settings, err := readSettings(inv)
	if err != nil {
		return all // prepare reports the error
	}
	for _, name := range settings.names {
		all = appendNamed(all, name, instructions.Everywhere, true)
	}
	for _, name := range settings.ignoreFiles() {
		all = appendNamed(all, name, instructions.Upward, false)
	}
	return all
}

// appendNamed appends a file that the user's settings name, unless it is outside the
// folder: then it is the user's.
func appendNamed(all []instructions.Read, name string, where instructions.Where, imports bool) []instructions.Read {
	name = filepath.ToSlash(filepath.Clean(name))
	read := instructions.Read{Name: literal.Replace(name), Where: where, Imports: imports}
	if read.Check() != nil || !filepath.IsLocal(name) {
		return all
	}
	return append(all, read)
}

// literal returns a pattern that matches only name.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// ignoreFiles returns the names of further ignore files of a workdir.
func (s *settings) ignoreFiles() (names []string) {
	value, err := s.all.get("context", "fileFiltering", "customIgnoreFilePaths")
	if err == nil && value != nil {
		_ = json.Unmarshal(value, &names) // the CLI reports errors
	}
	return names
}
