package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/gitenv"
	"github.com/busdk/bus-agent/internal/process"
)

// errInRepository means that the repository decides what PATH leads to.
var errInRepository = errors.New("inside the repository")

// noPath replaces a PATH without a usable entry: without PATH, programs search the
// current directory.
const noPath = "/usr/bin:/bin"

// A pathRule decides which programs in PATH bus-agent and the agent may run by name.
type pathRule struct {
	untrusted []string // folders whose content must not decide what runs
}

// newPathRule returns the rule for runs in the folders: the workdir and the added ones.
func newPathRule(environ []string, trusted bool, folders ...string) pathRule {
	var rule pathRule
	if trusted {
		return rule
	}
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil && isDir(abs) {
			rule.untrusted = append(rule.untrusted, repositories(abs, environ)...)
		}
	}
	slices.Sort(rule.untrusted)
	rule.untrusted = slices.Compact(rule.untrusted)
	return rule
}

// repositories returns dir and the folders of the repositories around it. The user's home
// and the root of the file system do not count, even as dir.
func repositories(dir string, environ []string) []string {
	home := homeOf(environ)
	all := append([]string{dir}, gitenv.Around(dir, home)...)
	return slices.DeleteFunc(all, func(dir string) bool { return gitenv.IsHomeOrRoot(dir, home) })
}

// CheckInput returns an agent.ErrUsage error for an input file, such as a prompt, that
// is in the repository around workdir but leads out of it, for example to the
// environment of this process, or is not a regular file. It accepts names outside the
// repository, /dev/fd/63 included, and names that do not exist. Both paths are absolute
// and need not be clean.
func CheckInput(workdir, name string, environ []string) error {
	repository := newPathRule(environ, false, workdir)
	clean := filepath.Clean(name)
	if dir := filepath.Dir(clean); dir == "/dev" || dir == "/dev/fd" || strings.HasPrefix(clean, "/proc/") {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil || repository.decides(name) == "":
		return nil
	case !slices.ContainsFunc(repository.untrusted, func(dir string) bool { return instructions.Contains(dir, name) }):
		return agent.Usagef("it leads out of the repository; name the file that it leads to")
	case !info.Mode().IsRegular() && !info.IsDir(): // which cannot be read anyway
		return agent.Usagef("it is in the repository and not a regular file; copy it to one")
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// decides returns the untrusted folder that contains file or a link to it, or "".
func (r pathRule) decides(file string) string {
	for _, dir := range r.untrusted {
		if instructions.Touches(dir, file) {
			return dir
		}
	}
	return ""
}

// find returns the absolute path of the first executable called name in path. The
// error matches fs.ErrNotExist if there is none, and errInRepository or
// process.ErrRelativePath if the first one is refused.
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

// clean returns path without the relative entries and those in untrusted folders.
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

// libraryPaths are variables that name code which the loader or Node.js puts into
// every program of the agent. An empty entry can mean the current directory.
var libraryPaths = []string{
	"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "NODE_PATH",
	"DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES",
}

// environ returns environ with a clean PATH and clean libraryPaths, the names of the
// variables that differ, and the warnings.
func (r pathRule) environ(environ []string) (clean, changed, warnings []string) {
	clean = environ
	for _, name := range append([]string{"PATH"}, libraryPaths...) {
		value, ok := agent.LookupEnv(environ, name)
		if !ok || value == "" && name != "PATH" {
			continue
		}
		var kept string
		var relative, untrusted []string
		if name == "PATH" {
			kept, relative, untrusted = r.clean(value)
		} else {
			kept, relative, untrusted = r.cleanLibraries(value, name)
		}
		if len(relative) > 0 {
			warnings = append(warnings, fmt.Sprintf("left out of the agent's %s, because they depend on the current directory: %s", name, strings.Join(relative, ", ")))
		}
		if len(untrusted) > 0 {
			warnings = append(warnings, fmt.Sprintf("left out of the agent's %s, because they are inside the repository: %s; use --trust-workspace to keep them", name, strings.Join(untrusted, ", ")))
		}
		change := name + "=" + kept
		if kept == "" {
			change = name // an empty value can mean the current directory
		}
		if name == "PATH" || len(relative)+len(untrusted) > 0 {
			clean = mergeEnv(clean, []string{change})
		}
		if len(relative)+len(untrusted) > 0 {
			changed = append(changed, name)
		}
	}
	return clean, changed, warnings
}

// cleanLibraries is clean for a variable of libraryPaths. A name without a slash in
// those that list files is searched where the system keeps libraries.
func (r pathRule) cleanLibraries(value, name string) (kept string, relative, untrusted []string) {
	isList := name == "LD_PRELOAD" || name == "LD_AUDIT" || name == "DYLD_INSERT_LIBRARIES"
	entries := filepath.SplitList(value)
	switch name {
	case "LD_PRELOAD": // spaces separate too
		entries = strings.FieldsFunc(value, func(c rune) bool { return c == ':' || unicode.IsSpace(c) })
	case "LD_LIBRARY_PATH": // with glibc ";" separates too, with musl a line break
		entries = filepath.SplitList(strings.NewReplacer(";", ":", "\n", ":").Replace(value))
	}
	entries = slices.DeleteFunc(entries, func(entry string) bool {
		if isList && !strings.Contains(entry, "/") {
			return entry == ""
		}
		switch {
		case strings.HasPrefix(entry, "$ORIGIN") || strings.HasPrefix(entry, "${ORIGIN}"):
			return false // the folder of the program
		case !filepath.IsAbs(entry):
			relative = append(relative, fmt.Sprintf("%q", entry))
		case !unreachable(entry) && r.decides(entry) != "":
			untrusted = append(untrusted, entry)
		default:
			return false
		}
		return true
	})
	return strings.Join(entries, string(os.PathListSeparator)), relative, untrusted
}

// CleanPath returns environ with the PATH and library paths that an agent in workdir
// gets: without relative entries and, unless trusted, without those inside the
// repositories of workdir and the added directories. It is for hooks and other programs
// that run next to an agent.
func CleanPath(environ []string, workdir string, trusted bool, addDirs ...string) []string {
	clean, _, _ := newPathRule(environ, trusted, append([]string{workdir}, addDirs...)...).environ(environ)
	return clean
}
