package gitenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/tree"
	"golang.org/x/sys/unix"
)

// Limits of the search.
const (
	maxFile  = 1 << 20  // bytes of one configuration file
	maxFiles = 10_000   // configuration files
	maxBytes = 64 << 20 // of all of them
	maxDepth = 10       // of includes, as git has it
)

// A finder collects the configuration of the repositories that git can use in some
// folders.
type finder struct {
	ctx   context.Context
	home  string
	queue []string // folders of repositories to look through
	seen  map[string]bool
	files int
	bytes int

	found []found  // variables that run programs
	hooks []string // files of hooks
}

// found is a variable of a repository, and the file that has it.
type found struct {
	entry
	file string
	rule *rule
}

// A refusal is the error of a file with something that cannot be neutralised.
func refusal(file, format string, args ...any) error {
	return fmt.Errorf("%s: %s", file, fmt.Sprintf(format, args...))
}

// up searches dir and the folders above it, as git does to find a repository.
func (f *finder) up(dir string) error {
	for {
		if err := f.gitFile(filepath.Join(dir, ".git")); err != nil {
			return err
		}
		if looksBare(dir) {
			if err := f.gitDir(dir); err != nil {
				return err
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// Names are the entries by which a folder is known to be or to have a repository.
func Names() []string { return []string{".git", "HEAD"} }

// down searches the folders below, and the folders of repositories elsewhere that these
// name. It does not follow links to folders: their targets are in another repository or
// are searched by their own name. It reports whether the search was complete.
func (f *finder) down(below []string) (complete bool, err error) {
	s, err := tree.SurveyOf(f.ctx, Names(), below...)
	if err != nil {
		return false, err
	}
	looked := map[string]bool{} // without links
	for _, dir := range below {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			looked[real] = true
		}
	}
	folders, left := s.Folders(below...), s.Left(below...)
	for {
		for _, folder := range folders {
			if err := context.Cause(f.ctx); err != nil {
				return false, err
			}
			if err := f.folder(folder); err != nil {
				return false, err
			}
		}
		if len(f.queue) == 0 {
			return len(left) == 0, nil
		}
		dir := f.queue[len(f.queue)-1]
		f.queue, folders = f.queue[:len(f.queue)-1], nil
		if tree.Within(looked, dir) {
			continue
		}
		looked[dir] = true
		if folders, err = s.More(f.ctx, dir); err != nil {
			return false, err
		}
		left = append(left, s.Left(dir)...)
	}
}

// folder searches a folder with an entry that has a name of git's.
func (f *finder) folder(folder tree.Folder) error {
	dir := folder.Path
	if err := folder.Err; err != nil && !(errors.Is(err, fs.ErrPermission) && unix.Access(dir, unix.X_OK) != nil) {
		return refusal(dir, "the folder cannot be searched for git configuration: %v", cause(err))
	}
	bare := false
	for _, e := range folder.Entries {
		switch {
		case strings.EqualFold(e.Name, ".git"):
			if err := f.gitFile(filepath.Join(dir, e.Name)); err != nil {
				return err
			}
		case strings.EqualFold(e.Name, "HEAD"):
			bare = bare || !e.Type.IsDir()
		}
	}
	if bare && looksBare(dir) {
		return f.gitDir(dir)
	}
	return nil
}

// looksBare reports whether git can take dir for the folder of a repository.
func looksBare(dir string) bool {
	exists := func(name string) bool { return typeOf(filepath.Join(dir, name)) != 0 }
	var st unix.Stat_t
	err := unix.Lstat(filepath.Join(dir, "HEAD"), &st) // it can be a link to nothing
	return err == nil && (exists("commondir") || exists("refs") && exists("objects"))
}

// Outermost returns the topmost folder at or above dir that git could take for a
// repository or its worktree, or dir if there is none. A repository further down may be
// one that git refuses, and then it searches further up. end reports the folders at which
// the search ends, which do not count.
func Outermost(dir string, end func(dir string) bool) string {
	outermost := dir
	for ; !end(dir); dir = filepath.Dir(dir) {
		if looksLikeWorktree(dir) || looksBare(dir) {
			outermost = dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return outermost
}

// looksLikeWorktree reports whether a folder has a .git that git could use. Agents leave
// empty ones behind, which it cannot.
func looksLikeWorktree(dir string) bool {
	git := filepath.Join(dir, ".git")
	switch typeOf(git) {
	case unix.S_IFREG:
		return true
	case unix.S_IFDIR:
		var st unix.Stat_t
		return unix.Lstat(filepath.Join(git, "HEAD"), &st) == nil
	}
	return false
}

// typeOf returns the type of a file, after links, or 0. It is for paths that are often
// absent: it makes no error.
func typeOf(name string) uint32 {
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}

// MainWorktree returns the main worktree of the repository of which dir is in a linked
// one, or "". Both have the same content.
func MainWorktree(dir string) string {
	for {
		var text []byte
		if git := filepath.Join(dir, ".git"); typeOf(git) == unix.S_IFREG {
			text, _ = readFile(git)
		}
		if target, ok := bytes.CutPrefix(text, []byte("gitdir: ")); ok {
			git := join(dir, strings.TrimRight(string(target), "\r\n"))
			common, err := readFile(filepath.Join(git, "commondir"))
			if err != nil {
				return ""
			}
			git, err = filepath.EvalSymlinks(join(git, strings.TrimRight(string(common), "\r\n")))
			if err != nil || filepath.Base(git) != ".git" || !looksBare(git) {
				return ""
			}
			return filepath.Dir(git)
		}
		if looksLikeWorktree(dir) || dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// gitFile searches a .git: a folder, or a file that names one.
func (f *finder) gitFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil
	case info.IsDir():
		return f.gitDir(name)
	case !info.Mode().IsRegular():
		return nil
	}
	text, err := readFile(name)
	if err != nil {
		return refusal(name, "%v", cause(err))
	}
	target, ok := bytes.CutPrefix(text, []byte("gitdir: "))
	if !ok {
		return nil // git refuses it
	}
	return f.gitDir(join(filepath.Dir(name), strings.TrimRight(string(target), "\r\n")))
}

func join(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name // not cleaned: ".." follows links, as for git
}

// gitDir searches the folder of a repository: its configuration, that of its worktrees
// and submodules, and its hooks.
func (f *finder) gitDir(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || f.seen[real] {
		return nil
	}
	f.seen[real] = true
	common := real
	if text, err := readFile(filepath.Join(real, "commondir")); err == nil {
		common = join(real, strings.TrimRight(string(text), "\r\n"))
	}
	for _, name := range []string{common + "/config", real + "/config", real + "/config.worktree", common + "/config.worktree"} {
		if err := f.config(name, 0); err != nil {
			return err
		}
	}
	for _, dir := range []string{real, common} {
		if err := f.hookFiles(filepath.Join(dir, "hooks")); err != nil {
			return err
		}
	}
	f.queue = append(f.queue, real) // submodules, worktrees, and what was put there
	if common != real {
		return f.gitDir(common)
	}
	return nil
}

// hookFiles looks for hooks in a folder. In one that is too large there can be some.
// One that cannot be listed is refused when it is searched for configuration.
func (f *finder) hookFiles(dir string) error {
	if f.seen["hooks "+dir] {
		return nil
	}
	f.seen["hooks "+dir] = true
	folder, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer folder.Close()
	first := len(f.hooks)
	for seen := 0; ; {
		list, err := folder.ReadDir(1024)
		for _, e := range list {
			name := filepath.Join(dir, e.Name())
			if filepath.Ext(name) == ".sample" {
				continue
			}
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				f.hooks = append(f.hooks, name)
			}
		}
		seen += len(list)
		if cause := context.Cause(f.ctx); cause != nil {
			return cause
		}
		if err == nil && seen > maxFiles {
			f.hooks = append(f.hooks[:first], filepath.Join(dir, fmt.Sprintf("(more than %d files)", maxFiles)))
		}
		if err != nil || seen > maxFiles {
			slices.Sort(f.hooks[first:])
			return nil
		}
	}
}

// config reads a configuration file and those it includes, under whatever condition.
func (f *finder) config(name string, depth int) error {
	if err := context.Cause(f.ctx); err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return nil // git cannot read it either
	}
	key := "config " + filepath.Join(dir, filepath.Base(name))
	if f.seen[key] {
		return nil
	}
	f.seen[key] = true
	text, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return refusal(name, "%v", cause(err))
	}
	f.bytes += len(text)
	if f.files++; f.files > maxFiles || f.bytes > maxBytes {
		return refusal(name, "more than %d files or %d bytes of git configuration", maxFiles, maxBytes)
	}
	entries, err := parse(text)
	if err != nil {
		return refusal(name, "%v", err)
	}
	for _, e := range entries {
		if path, ok := include(e); ok {
			target, err := f.included(name, path)
			if err != nil || depth == maxDepth {
				return refusal(name, "%s cannot be followed", e.key)
			}
			if err := f.config(target, depth+1); err != nil {
				return err
			}
		}
		r := ruleFor(e)
		if r == nil {
			continue
		}
		if r.refuse {
			return refusal(name, "%s runs a program, and nothing overrides it", e.key)
		}
		f.found = append(f.found, found{e, name, r})
	}
	return nil
}

// include returns the file that e includes.
func include(e entry) (path string, ok bool) {
	section, sub, name := split(e.key)
	return e.value, !e.bare && e.value != "" && name == "path" && (section == "include" && sub == "" || section == "includeif" && sub != "")
}

var errExpansion = errors.New("an expansion that is not known")

// included returns the absolute name of a file that file includes.
func (f *finder) included(file, path string) (string, error) {
	switch rest, isHome := strings.CutPrefix(path, "~/"); {
	case isHome && f.home != "":
		return join(f.home, rest), nil
	case strings.HasPrefix(path, "~") || strings.HasPrefix(path, "%(prefix)"):
		return "", errExpansion
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(file))
	return join(real, path), err
}

// readFile reads a configuration file. It follows links, as git does.
func readFile(name string) ([]byte, error) { return statefile.ReadLinked(name, maxFile) }

// cause returns err without the name of the file.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
