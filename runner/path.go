package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/process"
)

// errInRepository: what PATH leads to is decided by the repository.
var errInRepository = errors.New("inside the repository")

// noPath replaces a PATH without a usable entry: with an empty one, or none,
// programs look in the current directory.
const noPath = "/usr/bin:/bin"

// A pathRule says what may be executed by its name in PATH, both by bus-agent and
// by the agent.
type pathRule struct {
	untrusted []string // folders whose content must not decide what runs
}

// newPathRule returns the rule for runs in workdir. The user's home and the root
// of the file system are not repositories, also where a run starts there.
func newPathRule(workdir string, environ []string, trusted bool) pathRule {
	var rule pathRule
	if trusted {
		return rule
	}
	abs, err := filepath.Abs(workdir)
	if err != nil {
		return rule
	}
	for _, dir := range []string{instructions.FindRoot(abs), abs} {
		if !isHomeOrRoot(dir, environ) && !slices.Contains(rule.untrusted, dir) && isDir(dir) {
			rule.untrusted = append(rule.untrusted, dir)
		}
	}
	return rule
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// decides returns the untrusted folder that can decide what file is, or "".
func (r pathRule) decides(file string) string {
	for _, dir := range r.untrusted {
		if instructions.Touches(dir, file) {
			return dir
		}
	}
	return ""
}

// find returns the absolute path of the first executable called name in path. The
// error matches fs.ErrNotExist where there is none, and errInRepository or
// process.ErrRelativePath where the first one is refused.
func (r pathRule) find(name, path string) (string, error) {
	file, err := process.LookPath(name, path)
	if err != nil {
		return "", err
	}
	if dir := r.decides(file); dir != "" {
		return "", fmt.Errorf("%s is %w %s, or reached through it, and was not started: "+
			"remove that entry from PATH, or use --trust-workspace", file, errInRepository, dir)
	}
	return file, nil
}

// clean returns path without the entries that are relative and those that an
// untrusted folder decides.
func (r pathRule) clean(path string) (kept string, relative, untrusted []string) {
	var entries []string
	for _, entry := range filepath.SplitList(path) {
		switch {
		case !filepath.IsAbs(entry):
			relative = append(relative, fmt.Sprintf("%q", entry))
		case !unreachable(entry) && r.decides(entry) != "":
			untrusted = append(untrusted, entry)
		default:
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		return noPath, relative, untrusted
	}
	return strings.Join(entries, string(os.PathListSeparator)), relative, untrusted
}

// unreachable reports whether an entry of PATH is in a folder that may not be
// searched. Such an entry is common, harmless and cannot be followed.
func unreachable(entry string) bool {
	_, err := os.Stat(entry)
	return errors.Is(err, fs.ErrPermission)
}

// environ returns environ with a clean PATH, and what to warn of.
func (r pathRule) environ(environ []string) (clean []string, warnings []string) {
	path, ok := agent.LookupEnv(environ, "PATH")
	if !ok {
		return environ, nil
	}
	kept, relative, untrusted := r.clean(path)
	if len(relative) > 0 {
		warnings = append(warnings, fmt.Sprintf("left out of the agent's PATH, because they depend on the current directory: %s", strings.Join(relative, ", ")))
	}
	if len(untrusted) > 0 {
		warnings = append(warnings, fmt.Sprintf("left out of the agent's PATH, because they are inside the repository: %s; use --trust-workspace to keep them", strings.Join(untrusted, ", ")))
	}
	return mergeEnv(environ, []string{"PATH=" + kept}), warnings
}

// CleanPath returns environ with the PATH that an agent in workdir is given: without
// relative entries and, unless trusted, without those inside the repository of
// workdir. Hooks and other programs of the user that run next to an agent use it.
func CleanPath(environ []string, workdir string, trusted bool) []string {
	clean, _ := newPathRule(workdir, environ, trusted).environ(environ)
	return clean
}
