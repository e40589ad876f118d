package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

const (
	excludesKey = "claudeMdExcludes"
	pluginsKey  = "enabledPlugins"
	// agentsPlugin is the plugin of Claude Code that reads AGENTS.md.
	agentsPlugin = "cc-plugin-agents-md@builtin"
	// maxSettings bounds settings: they are one argument.
	maxSettings = 100 << 10
)

// exclude keeps Claude Code from reading again what the prompt file delivers. The
// settings of the run that do so include the caller's.
func exclude(ctx context.Context, inv registry.Invocation, t *tree, setup *registry.Setup) error {
	if len(t.agents) == 0 {
		return nil
	}
	settings, err := callerSettings(inv)
	if err != nil {
		return err
	}
	var excludes []string
	if old, ok := settings[excludesKey]; ok {
		if err := json.Unmarshal(old, &excludes); err != nil {
			return agent.Usagef("%s of your --settings is not a list of strings", excludesKey)
		}
	}
	copies, err := t.copies(ctx)
	if err != nil {
		return err
	}
	for _, rel := range copies {
		excludes = append(excludes, filepath.Join(t.root.Name(), filepath.FromSlash(rel)))
	}
	plugins := map[string]json.RawMessage{}
	if old, ok := settings[pluginsKey]; ok {
		if err := json.Unmarshal(old, &plugins); err != nil || plugins == nil {
			return agent.Usagef("%s of your --settings is not an object", pluginsKey)
		}
	}
	plugins[agentsPlugin] = json.RawMessage("false")
	settings[excludesKey] = encode(excludes)
	settings[pluginsKey] = encode(plugins)
	return passSettings(settings, inv, setup)
}

// passSettings makes settings, which include those of the caller, the only ones of the
// run: Claude Code uses only the last --settings.
func passSettings(settings map[string]json.RawMessage, inv registry.Invocation, setup *registry.Setup) error {
	text := encode(settings)
	if len(text) > maxSettings {
		return agent.Usagef("--settings of %d bytes are too long, at most %d can be passed on", len(text), maxSettings)
	}
	setup.Args = append(setup.Args, settingsFlag, string(text))
	setup.CallerArgs = withoutSettings(inv.Args)
	return nil
}

// encode returns v as JSON with sorted members. It cannot fail for these types.
func encode[T []string | map[string]string | map[string]json.RawMessage](v T) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// copies returns the AGENTS.md files, and each file that Claude Code would read and
// that is a link to or a copy of one.
func (t *tree) copies(ctx context.Context) (found []string, err error) {
	for _, a := range t.agents {
		found = append(found, a.rel)
	}
	for _, dir := range t.dirs {
		names := slices.Clone(memoryNames)
		rules, err := t.rules(ctx, path.Join(dir, ".claude/rules"))
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			names = append(names, ".claude/rules/"+rule)
		}
		for _, name := range names {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if f, err := t.read(path.Join(dir, name)); err == nil && f.same(t.agents) {
				found = append(found, f.rel)
			}
		}
	}
	return found, nil
}

const (
	// maxRules is how many entries below a folder of rules are read.
	maxRules = 10_000
	// maxRuleDepth is how many folders deep they are.
	maxRuleDepth = 32
)

// rules returns the names of the rules in a folder and in those below it, in order.
func (t *tree) rules(ctx context.Context, dir string) (names []string, err error) {
	left := maxRules
	for folders := []string{"."}; len(folders) > 0; folders = folders[1:] {
		in := folders[0]
		if strings.Count(in, "/") >= maxRuleDepth {
			return nil, agent.Usagef("%s has folders more than %d deep: remove those that are not rules", dir, maxRuleDepth)
		}
		entries, err := t.entries(ctx, path.Join(dir, in), left)
		if err != nil {
			return nil, err
		}
		if left -= len(entries); left < 0 {
			return nil, agent.Usagef("%s has more than %d entries: remove those that are not rules", dir, maxRules)
		}
		for _, e := range entries {
			switch name := path.Join(in, e.Name()); {
			case e.IsDir():
				folders = append(folders, name)
			case path.Ext(name) == ".md":
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// entries returns the entries of a folder; if there are more than limit, not all.
func (t *tree) entries(ctx context.Context, dir string, limit int) (list []fs.DirEntry, err error) {
	folder, err := t.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil // Claude Code cannot read them either
	}
	defer folder.Close()
	for len(list) <= limit {
		entries, err := folder.ReadDir(1024)
		list = append(list, entries...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			break
		}
	}
	return list, nil
}

// callerSettings returns the caller's --settings, which are JSON or the name of a
// file.
func callerSettings(inv registry.Invocation) (map[string]json.RawMessage, error) {
	value, found := settingsArg(inv.Args)
	if !found {
		return map[string]json.RawMessage{}, nil
	}
	text := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		file := value
		if !filepath.IsAbs(file) {
			file = filepath.Join(inv.Workdir, file)
		}
		var err error
		if text, err = registry.ReadFile(file, maxSettings); err != nil {
			return nil, &agent.Error{Kind: agent.ErrUsage, Err: fmt.Errorf("your --settings cannot be read: %w", err)}
		}
	}
	settings, err := registry.ParseObject(text)
	if err != nil {
		return nil, agent.Usagef("your --settings are not a JSON object")
	}
	return settings, nil
}
