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

// CheckInput reports why a file of the repository around workdir must not be read
// as input, such as a prompt that the caller names: it leads out of the repository,
// for example to the environment of this process, or it is not a regular file. A
// name outside the repository, /dev/fd/63 included, and one that does not exist are
// accepted. Neither argument need be cleaned; both are absolute.
func CheckInput(workdir, name string, environ []string) error {
	repository := newPathRule(workdir, environ, false)
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
		return agent.Usagef("it is not a regular file of the repository; use - to read from standard input")
	}
	return nil
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

// libraryPaths are variables whose entries are searched, by the loader of programs
// or by Node.js, for code that every program of the agent then runs. An empty entry
// can mean the current directory.
var libraryPaths = []string{
	"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "NODE_PATH",
	"DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES",
}

// environ returns environ with a clean PATH and clean libraryPaths, the names of
// the variables that differ, and what to warn of.
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
	if name == "LD_PRELOAD" { // spaces separate too
		entries = strings.FieldsFunc(value, func(c rune) bool { return c == ':' || unicode.IsSpace(c) })
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

// CleanPath returns environ with the PATH that an agent in workdir is given, and the
// variables with which programs find libraries: without relative entries and, unless
// trusted, without those inside the repository of workdir. Hooks and other programs
// of the user that run next to an agent use it.
func CleanPath(environ []string, workdir string, trusted bool) []string {
	clean, _, _ := newPathRule(workdir, environ, trusted).environ(environ)
	return clean
}
