package codex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// homeParent is the folder of private homes. Codex's sandbox protects .codex.
const homeParent = ".codex/bus"

// homeEnv names the variable that moves Codex's home.
const homeEnv = "CODEX_HOME"

var userHome = registry.Home{Env: homeEnv, Folder: ".codex", Logins: []string{"auth.json"}}

// Codex has its sessions in a tree of days below its home. bus-agent keeps that tree
// under another name.
const (
	sessionTree = "sessions"
	keptTree    = "rollouts"
)

var privateHome = registry.PrivateHome{
	Home:     userHome,
	Parent:   homeParent,
	Tree:     sessionTree,
	Kept:     keptTree,
	Patterns: []string{"*"},
	// Codex finds a session by the ID at the end of its file name.
	IsSession: func(kept, id string) bool {
		if !strings.HasPrefix(kept, keptTree+"/") || path.Ext(kept) != ".jsonl" {
			return false
		}
		found := sessionID(kept)
		return found != "" && (id == "" || id == found)
	},
	Restored: func(_ *instructions.Home, kept string, _ registry.Invocation, setup *registry.Setup) error {
		setup.Resume = sessionID(kept)
		return nil
	},
}

// trustFlag makes a run use the repository's settings.
const trustFlag = "--trust"

// prepare gives the run its home and lets Codex find AGENTS.md.
func prepare(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); ownHome {
		setup, err := prepareOwnHome(inv)
		if err != nil {
			return registry.Setup{}, err
		}
		if !inv.TrustWorkspace {
			err = deliverPrefix(inv, w, &setup)
			return setup, err
		}
		setup.Args = append(setup.Args, nativeDiscovery(w.Chain())...)
		err = overridden(inv, w.Chain(), &setup)
		return setup, err
	}
	return prepareHome(inv, w, deliver)
}

// prepareHome gives the run its home, to which deliver adds the instructions.
func prepareHome(inv registry.Invocation, w *instructions.Workspace, deliver delivery) (registry.Setup, error) {
	return privateHome.Prepare(inv, w, func(home *instructions.Home, setup *registry.Setup) error {
		own := ""
		if usesConfig(inv) {
			var err error
			if own, err = addUserConfig(inv, home); err != nil {
				return err
			}
		}
		switch {
		case inv.TrustWorkspace:
			// Codex saves the trust in the private home, so it ends with the run.
			setup.Args = []string{trustFlag}
		case usesConfig(inv):
			// It gives the model no AGENTS.md of a project that is not trusted.
			deliver = deliverText
		default:
			setup.Args = ignoreConfig()
		}
		if !inv.TrustWorkspace {
			setup.Warnings = append(setup.Warnings, leftOut(w.Chain())...)
		}
		// An inherited CODEX_SQLITE_HOME or config.toml can name databases of the user. They
		// would store paths of session files that exist only in this home.
		setup.Args = append(setup.Args, config("sqlite_home", home.Path())...)
		setup.Complete = func(result *agent.Result) { complete(home, result) }
		if err := deliver(inv, w, own, home, setup); err != nil || inv.Schema == nil {
			return err
		}
		setup.Args = append(setup.Args, "--output-schema", filepath.Join(home.Path(), schemaFile))
		return home.WriteFile(schemaFile, registry.BareSchema(inv.Schema), 0o600)
	})
}

// prepareOwnHome runs with the home that the caller chose, unchanged. If a repository
// could have written to it, its settings are used only with trust in the workspace.
func prepareOwnHome(inv registry.Invocation) (registry.Setup, error) {
	var setup registry.Setup
	home, err := inv.CallerHome(homeEnv)
	if err != nil {
		return setup, err
	}
	if inv.Continue {
		return setup, agent.Usagef("the latest session cannot be found in a %s of your own; resume it by its ID", homeEnv)
	}
	if inv.UserConfig == agent.UserConfigOff {
		setup.Args = ignoreConfig()
	}
	if inv.Untrusted(home) {
		if _, err := os.Lstat(filepath.Join(home, ".env")); err == nil {
			return setup, agent.Usagef("%s is inside the repository, and Codex would run what %s says; remove the file or use --trust-workspace", homeEnv, filepath.Join(home, ".env"))
		}
		setup.Args = ignoreConfig()
		setup.Warnings = []string{homeEnv + " is inside the repository; its settings and rules are left out"}
	}
	return setup, nil
}

// ignoreConfig returns the flags that keep Codex from running anything named in a
// home.
func ignoreConfig() []string { return []string{"--ignore-user-config", "--ignore-rules"} }

// leftOut warns of settings of the repository that are not used: Codex does not read
// those of an untrusted project.
func leftOut(chain instructions.Chain) []string {
	var warnings []string
	for _, dir := range chain.Dirs() {
		for _, name := range []string{"config.toml", "hooks.json", "rules"} {
			file := filepath.Join(dir, ".codex", name)
			if _, err := os.Lstat(file); err != nil {
				continue
			}
			if rel, err := filepath.Rel(chain.Root, file); err == nil {
				file = rel
			}
			warnings = append(warnings, fmt.Sprintf("the repository's %s is left out; use --trust-workspace to let it count", filepath.ToSlash(file)))
		}
	}
	return warnings
}

// sessionID returns the ID in the name of a session file, rollout-<time>-<uuid>.jsonl,
// or "". The repository may have made the file, so only a UUID is accepted.
func sessionID(file string) string {
	name := strings.TrimSuffix(path.Base(file), ".jsonl")
	const uuid = 36
	if len(name) < uuid {
		return ""
	}
	id := name[len(name)-uuid:]
	for i, c := range id {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (c == '-') || !hyphen && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return ""
		}
	}
	return id
}

// A delivery arranges that each AGENTS.md of the chain reaches the model once, after the
// user's own text.
type delivery func(inv registry.Invocation, w *instructions.Workspace, own string, home *instructions.Home, setup *registry.Setup) error

// deliver lets Codex find the files if its discovery reads each of them once.
func deliver(inv registry.Invocation, w *instructions.Workspace, own string, home *instructions.Home, setup *registry.Setup) error {
	chain := w.Chain()
	if nativeWorks(chain) {
		if own != "" {
			if err := home.WriteFile(instructions.FileName, []byte(own), 0o600); err != nil {
				return err
			}
		}
		setup.Args = append(setup.Args, nativeDiscovery(chain)...)
		return overridden(inv, chain, setup)
	}
	return deliverText(inv, w, own, home, setup)
}

// deliverText delivers the files through the home.
func deliverText(_ registry.Invocation, w *instructions.Workspace, own string, home *instructions.Home, setup *registry.Setup) error {
	text, err := wholeText(w, setup)
	if err != nil {
		return err
	}
	return home.WriteFile(instructions.FileName, []byte(own+text), 0o600)
}

// deliverPrefix delivers the files before the prompt, for a home that must not change.
func deliverPrefix(inv registry.Invocation, w *instructions.Workspace, setup *registry.Setup) error {
	setup.Warnings = append(setup.Warnings, leftOut(w.Chain())...)
	text, err := wholeText(w, setup)
	if err == nil && text != "" && !inv.HasInstructions() {
		setup.Prefix = text + "\n"
	}
	return err
}

// wholeText returns the text of the chain and keeps Codex from reading its files.
func wholeText(w *instructions.Workspace, setup *registry.Setup) (string, error) {
	text, warnings, err := w.Chain().Text(instructions.MaxBytes)
	if err != nil {
		return "", err
	}
	setup.Warnings = append(setup.Warnings, warnings...)
	setup.Args = append(setup.Args, config("project_doc_max_bytes", int64(0))...)
	return text, nil
}

// overrideName is the file that Codex reads in place of an AGENTS.md in the same folder.
const overrideName = "AGENTS.override.md"

// overridden warns of each AGENTS.md that another file replaces, and refuses the run if
// AGENTS.md is required.
func overridden(inv registry.Invocation, chain instructions.Chain, setup *registry.Setup) error {
	for _, file := range chain.Files {
		if _, err := os.Stat(filepath.Join(filepath.Dir(file.Path), overrideName)); err != nil {
			continue
		}
		text := fmt.Sprintf("Codex reads %s in place of %s", path.Join(path.Dir(file.Rel), overrideName), file.Rel)
		if inv.RequireInstructions {
			return agent.Usagef("%s, but that is required whole; nothing was started", text)
		}
		setup.Warnings = append(setup.Warnings, text)
	}
	return nil
}

// overrides returns the size of the files that replace an AGENTS.md. They count toward
// the limit.
func overrides(chain instructions.Chain) (size int64) {
	for _, dir := range chain.Dirs() {
		if info, err := os.Stat(filepath.Join(dir, overrideName)); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}

// nativeWorks reports whether Codex's discovery reads exactly the files of the chain,
// each once.
func nativeWorks(chain instructions.Chain) bool {
	return len(chain.Warnings) == 0 && chain.Size()+overrides(chain) <= instructions.MaxBytes && !linked(chain.Files)
}

// linked reports whether one of files is another name of another.
func linked(files []instructions.File) bool {
	var seen []fs.FileInfo
	for _, file := range files {
		info, err := os.Stat(file.Path)
		if err != nil {
			continue
		}
		if slices.ContainsFunc(seen, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
			return true
		}
		seen = append(seen, info)
	}
	return false
}

// nativeDiscovery returns the settings under which Codex reads the chain.
func nativeDiscovery(chain instructions.Chain) []string {
	// The separators that Codex adds count too.
	const separator = 16
	args := config("project_doc_max_bytes", max(chain.Size()+overrides(chain)+separator*int64(len(chain.Files)), 1))
	if gitRoot(chain.Workdir) != chain.Root {
		args = append(args, config("project_root_markers", rootMarkers(chain))...)
	}
	return args
}

// gitRoot returns the directory that Codex takes for the repository root: the nearest
// one with anything named .git, even an empty directory.
func gitRoot(workdir string) string {
	for dir := workdir; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return workdir
		}
	}
}

// rootMarkers returns a marker that only the root has: the path from its parent down to
// the workdir. With an empty list Codex searches only the workdir.
func rootMarkers(chain instructions.Chain) []string {
	if chain.Root == chain.Workdir {
		return []string{}
	}
	rel, err := filepath.Rel(chain.Root, chain.Workdir)
	if err != nil {
		return []string{}
	}
	return []string{filepath.ToSlash(filepath.Join("..", filepath.Base(chain.Root), rel))}
}
