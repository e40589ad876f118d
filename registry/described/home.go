package described

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// checkHome returns what is wrong with the home of d and with the files in it.
func (d *Definition) checkHome() error {
	if d.Home == nil {
		for what, s := range d.allSettings() {
			if len(s.Files) > 0 {
				return fmt.Errorf(`%s: files need "home"`, what)
			}
		}
		return nil
	}
	h := d.Home
	switch {
	case d.Instructions == instructionsNone:
		return fmt.Errorf(`home: it needs instructions %q or %q`, instructionsInPrompt, instructionsNative)
	case h.Env != "" && !isVariable(h.Env):
		return fmt.Errorf("home.env: %q is not the name of a variable", h.Env)
	case slices.Contains(neededEnv, h.Env):
		return fmt.Errorf("home.env: %s is needed by every program", h.Env)
	case h.Folder != "" && h.Folder != "." && !isFileName(h.Folder):
		return fmt.Errorf("home.folder: %q is not a path below a folder", h.Folder)
	case h.Env == "" && !d.usesHome():
		return fmt.Errorf("home: it needs env, or %s in an argument or variable", holdHome)
	case len(h.Sessions) == 0 && h.Env != "" && (d.has(holdResume) || d.has(holdContinue)):
		return fmt.Errorf("home: %s and %s need sessions, the patterns of the files to keep", holdResume, holdContinue)
	}
	if _, set := d.Env[h.Env]; set {
		return fmt.Errorf("env: %s is the variable of the home", h.Env)
	}
	tree, _ := h.kept()
	for _, pattern := range h.Sessions {
		_, err := path.Match(pattern, "")
		below, ok := strings.CutPrefix(pattern, tree+"/")
		if err != nil || !ok || !isFileName(below) || strings.ContainsAny(tree, `*?[`) {
			return fmt.Errorf("home.sessions: %q is not a pattern of path.Match in one folder with the others, such as sessions/*.json", pattern)
		}
	}
	for _, name := range h.Logins {
		if !isFileName(name) {
			return fmt.Errorf("home.logins: %q is not a path below a folder", name)
		}
	}
	if err := h.checkFiles(h.Files); err != nil {
		return fmt.Errorf("home.files: %w", err)
	}
	for what, s := range d.allSettings() {
		if _, set := s.Env[h.Env]; set {
			return fmt.Errorf("%s: %s is the variable of the home", what, h.Env)
		}
		if err := h.checkFiles(s.Files); err != nil {
			return fmt.Errorf("%s.files: %w", what, err)
		}
	}
	return nil
}

// checkFiles returns what is wrong with the names of files.
func (h *Home) checkFiles(files map[string]string) error {
	for name := range files {
		if !isFileName(name) {
			return fmt.Errorf("%q is not a path below a folder", name)
		}
		if slices.ContainsFunc(h.Logins, func(login string) bool { return name == login || strings.HasPrefix(name, login+"/") }) {
			return fmt.Errorf("%q is a login of the user", name)
		}
	}
	return nil
}

// isFileName reports whether s is a clean slash-separated path below a folder.
func isFileName(s string) bool {
	return s != "." && path.Clean(s) == s && filepath.IsLocal(s) && printable(s) && !strings.Contains(s, `\`)
}

// kept returns the folder with the sessions, and their patterns below it.
func (h *Home) kept() (tree string, patterns []string) {
	if len(h.Sessions) == 0 {
		return "sessions", nil
	}
	tree, _, _ = strings.Cut(h.Sessions[0], "/")
	for _, pattern := range h.Sessions {
		patterns = append(patterns, strings.TrimPrefix(pattern, tree+"/"))
	}
	return tree, patterns
}

// user is the user's home.
func (h *Home) user() registry.Home {
	return registry.Home{Env: h.Env, Folder: h.Folder, Logins: h.Logins, FullAccess: true}
}

// private returns the description of private homes.
func (h *Home) private(parent string) *registry.PrivateHome {
	tree, patterns := h.kept()
	return &registry.PrivateHome{
		Home:     h.user(),
		Parent:   parent,
		Tree:     tree,
		Kept:     tree,
		Patterns: patterns,
		IsSession: func(kept, id string) bool {
			return strings.HasPrefix(kept, tree+"/") && hasWord(path.Base(kept), id)
		},
		Restored: func(*instructions.Home, string, registry.Invocation, *registry.Setup) error { return nil },
	}
}

// hasWord reports whether name has word with no letter or digit next to it: the ID 1 does
// not mean the file 12.json. Each name has the empty word.
func hasWord(name, word string) bool {
	if word == "" {
		return true
	}
	for from := 0; ; from++ {
		i := strings.Index(name[from:], word)
		if i < 0 {
			return false
		}
		from += i
		before, _ := utf8.DecodeLastRuneInString(name[:from])
		after, _ := utf8.DecodeRuneInString(name[from+len(word):])
		if !isAlphanumeric(before) && !isAlphanumeric(after) {
			return true
		}
	}
}

func isAlphanumeric(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// ofCaller reports whether the caller has chosen the home.
func (h *Home) ofCaller(inv registry.Invocation) bool {
	_, chosen := agent.LookupEnv(inv.Env, h.Env)
	return h.Env != "" && chosen
}

// useCallerHome prepares a start with the home that the caller chose, unchanged.
func (d *Definition) useCallerHome(inv registry.Invocation) (setup registry.Setup, err error) {
	setup.Home, err = inv.CallerHome(d.Home.Env)
	switch {
	case err != nil:
	case d.has(holdMCPFile) && len(inv.MCPServers) > 0:
		err = agent.Usagef("MCP servers cannot be added to a %s that the caller chose; leave out one of them", d.Home.Env)
	case inv.Untrusted(setup.Home):
		err = agent.Usagef("%s is inside the repository, and what it names would run; choose another or use --trust-workspace", d.Home.Env)
	case inv.Access != agent.AccessFull:
		err = agent.Usagef("access %s cannot be held with a %s that the caller chose, since its settings would have to say so; leave it out or give access full", inv.Access, d.Home.Env)
	}
	return setup, err
}

// writeFiles writes the files of the private home for inv.
func (d *Definition) writeFiles(inv registry.Invocation, home *instructions.Home) error {
	files := maps.Clone(d.Home.Files)
	if files == nil {
		files = map[string]string{}
	}
	for _, s := range d.settings(inv) {
		maps.Copy(files, s.Files)
	}
	if d.has(holdMCPFile) && len(inv.MCPServers) > 0 {
		files[mcpName] = string(agent.MCPConfig(inv.MCPServers))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := home.WriteFile(name, []byte(files[name]), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// usesHome reports whether {home} is in an argument or variable.
func (d *Definition) usesHome() bool {
	args, envs := slices.Concat(d.Args, d.Continue), []map[string]*string{d.Env}
	for _, s := range d.allSettings() {
		args, envs = append(args, s.Args...), append(envs, s.Env)
	}
	for _, env := range envs {
		for _, value := range env {
			if value != nil && strings.Contains(*value, holdHome) {
				return true
			}
		}
	}
	return slices.ContainsFunc(args, func(a Argument) bool { return a.has(holdHome) })
}
