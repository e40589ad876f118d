package codex

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// reads lists the files that Codex reads by itself (0.171.0). It reads AGENTS.md only
// if each is known to be a file of the repository, or if the caller chose the home.
func reads(inv registry.Invocation) []instructions.Read {
	all := instructions.Reads(instructions.Upward, overrideName,
		".agents/skills/**/SKILL.md", ".agents/skills/**/openai.yaml",
		".codex/skills/**/SKILL.md", ".codex/skills/**/openai.yaml",
		".codex/config.toml", ".codex/hooks.json", ".codex/rules/*")
	for _, plugin := range []string{".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json"} {
		all = append(all, instructions.Reads(instructions.Upward,
			plugin, ".codex/"+plugin, homeParent+"/"+plugin, ".codex/skills/**/"+plugin, ".agents/"+plugin, ".agents/skills/**/"+plugin)...)
	}
	settings := strings.Join(inv.Args, "\n")
	if home, ok := agent.LookupEnv(inv.Env, homeEnv); ok {
		all = append(all, instructions.Read{Name: instructions.FileName})
		settings += "\n" + configText(inv, home)
	}
	for _, name := range fallbackNames(settings) {
		if read := (instructions.Read{Name: name}); read.Check() == nil {
			all = append(all, read)
		}
	}
	return all
}

// configText returns the config.toml in a home that the caller chose; "" if it
// cannot be read.
func configText(inv registry.Invocation, home string) string {
	if !filepath.IsAbs(home) {
		home = filepath.Join(inv.Workdir, home)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return ""
	}
	defer root.Close()
	return string(readTail(func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}, "config.toml"))
}

var (
	fallbackList = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`project_doc_fallback_filenames["']?\s*=\s*\[([^\]]*)\]`)
	})
	quotedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"\n]*)"|'([^'\n]*)'`) })
)

// fallbackNames returns the names of the files that Codex, by its settings, reads in a
// folder without AGENTS.md.
func fallbackNames(settings string) (names []string) {
	for _, list := range fallbackList().FindAllStringSubmatch(settings, -1) {
		for _, name := range quotedName().FindAllStringSubmatch(list[1], -1) {
			names = append(names, filepath.ToSlash(filepath.Clean(name[1]+name[2])))
		}
	}
	return names
}
