package gitenv

import (
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
	"github.com/busdk/bus-agent/internal/unix"
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
	ctx     context.Context
	home    string
	trusted bool     // only what blocks git is searched for
	queue   []queued // further folders to search
	seen    map[string]bool
	configs map[string]*configuration
	files   int
	bytes   int
	values  int

	found []found  // variables that run programs
	hooks []string // files of hooks
	execs []string // lists of rebases with commands
}

// queued is a folder to search. In one of git, everything is.
type queued struct {
	dir string // without links
	git bool
}

// A configuration is a file that was read.
type configuration struct {
	name     string
	entries  []entry
	includes []*configuration
}

// found is a variable of a repository, and the file that has it.
type found struct {
	entry
	file string
	rule *rule
}

// refusal is the error of a file with something that cannot be neutralised; nil in a
// trusted workspace.
func (f *finder) refusal(file, format string, args ...any) error {
	if f.trusted {
		return nil
	}
	return refusal(file, format, args...)
}

func refusal(file, format string, args ...any) error {
	return fmt.Errorf("%s: %s", file, fmt.Sprintf(format, args...))
}

// unreadable is the refusal of a file that could not be read, also of a trusted one
// that would block git.
func (f *finder) unreadable(file string, err error) error {
	if info, err := os.Stat(file); err == nil && blocks(info) {
		return fmt.Errorf("%s %w", file, ErrBlocks)
	}
	return f.refusal(file, "%v", cause(err))
}

// up searches dir and the folders above it, as git does to find a repository.
func (f *finder) up(dir string) error {
	for {
		if err := f.gitFile(filepath.Join(dir, ".git")); err != nil {
			return err
		}
		if looksBare(dir) {
			if err := f.gitDir(dir, dir); err != nil {
				return err
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// Names are the entries by which a folder is known to be or to have a repository, and
// those that git reads in a worktree.
func Names() []string { return append([]string{".git", "HEAD"}, worktreeFiles...) }

// down searches the folders below, and the folders of repositories elsewhere that these
// name. It follows no link to a folder of a worktree: the target is in another repository
// or is searched by its own name. It reports whether the search was complete.
func (f *finder) down(below []string) (complete bool, err error) {
	s, err := tree.SurveyOf(f.ctx, Names(), below...)
	if err != nil {
		return false, err
	}
	looked, git := map[string]bool{}, map[string]bool{} // without links
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
		next := f.queue[len(f.queue)-1]
		f.queue, folders = f.queue[:len(f.queue)-1], nil
		if tree.Within(git, next.dir) || tree.Within(looked, next.dir) && (!next.git || knownAsGit(next.dir)) {
			continue
		}
		looked[next.dir] = true
		if next.git {
			git[next.dir] = true
		}
		if folders, err = s.More(f.ctx, next.dir, next.git); err != nil {
			return false, err
		}
		left = append(left, s.Left(next.dir)...)
	}
}

// knownAsGit reports whether a survey marks a folder as one of a repository.
func knownAsGit(dir string) bool { return strings.Contains(dir+"/", "/.git/") || looksBare(dir) }

func (f *finder) enqueue(dir string, git bool) { f.queue = append(f.queue, queued{dir, git}) }

// folder searches a folder with an entry that has a name of git's.
func (f *finder) folder(folder tree.Folder) error {
	dir := folder.Path
	if err := folder.Err; err != nil && !(errors.Is(err, fs.ErrPermission) && unix.Access(dir, unix.X_OK) != nil) {
		if err := f.refusal(dir, "the folder cannot be searched for git configuration: %v", cause(err)); err != nil {
			return err
		}
	}
	bare := false
	for _, e := range folder.Entries {
		isGit := strings.EqualFold(e.Name, ".git")
		if folder.Git || isGit || isWorktreeFile(e.Name) {
			if err := f.entry(dir, e, folder.Git); err != nil {
				return err
			}
		}
		switch {
		case isGit:
			if err := f.gitFile(filepath.Join(dir, e.Name)); err != nil {
				return err
			}
		case strings.EqualFold(e.Name, "HEAD"):
			bare = bare || !e.Type.IsDir()
		}
	}
	if bare && looksBare(dir) {
		return f.gitDir(dir, dir)
	}
	return nil
}

// looksBare reports whether git can take dir for the folder of a repository.
func looksBare(dir string) bool {
	has := func(name string) bool { return typeOf(filepath.Join(dir, name)) != 0 }
	var st unix.Stat_t
	err := unix.Lstat(filepath.Join(dir, "HEAD"), &st) // it can be a link to nothing
	return err == nil && (has("commondir") || has("refs") && has("objects"))
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

// gitFile searches a .git: a folder, or a file that names one.
func (f *finder) gitFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil
	case info.IsDir():
		return f.gitDir(name, filepath.Dir(name))
	case blocks(info):
		return fmt.Errorf("%s %w", name, ErrBlocks)
	case !info.Mode().IsRegular():
		return nil
	}
	text, err := readPath(name)
	if err != nil {
		return f.unreadable(name, err)
	}
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return nil // git refuses it
	}
	return f.gitDir(join(filepath.Dir(name), target), filepath.Dir(name))
}

func join(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name // not cleaned: ".." follows links, as for git
}

// gitDir searches the folder of a repository: its configuration, that of its worktrees
// and submodules, and its hooks. git works in worktree.
func (f *finder) gitDir(dir, worktree string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || f.seen[real+"\x00"+worktree] {
		return nil
	}
	f.seen[real+"\x00"+worktree] = true
	common := real
	name := filepath.Join(real, "commondir")
	switch text, err := readPath(name); {
	case err == nil:
		common = join(real, text)
	case !isAbsent(err):
		if err := f.unreadable(name, err); err != nil {
			return err
		}
	}
	var configs []*configuration
	for _, name := range []string{common + "/config", real + "/config", real + "/config.worktree", common + "/config.worktree"} {
		c, err := f.config(name, 0)
		if err != nil {
			return err
		}
		if c != nil {
			configs = append(configs, c)
		}
	}
	if configs, err = f.flat(configs); err != nil {
		return err
	}
	folders, err := f.worktrees(worktree, real, configs)
	if err != nil {
		return err
	}
	for _, c := range configs {
		for _, e := range c.entries {
			if err := f.value(c.name, e, folders); err != nil {
				return err
			}
		}
	}
	if f.seen[real] {
		return nil
	}
	f.seen[real] = true
	for _, dir := range []string{real, common} {
		if err := f.hookFiles(filepath.Join(dir, "hooks")); err != nil {
			return err
		}
	}
	if list := filepath.Join(real, "rebase-merge/git-rebase-todo"); execLines(list) {
		f.execs = append(f.execs, list)
	}
	if err := f.alternates(filepath.Join(common, "objects")); err != nil {
		return err
	}
	f.enqueue(real, true) // submodules, worktrees, and what was put there
	if common != real {
		return f.gitDir(common, worktree)
	}
	return nil
}

// worktrees returns the folders that values of the configuration are relative to, each
// once: those of the repository, and those that its configuration names as the worktree,
// which it enqueues. Home is not searched.
func (f *finder) worktrees(worktree, real string, configs []*configuration) (folders []string, err error) {
	named, seen := map[string]bool{}, map[string]bool{}
	add := func(dir string) bool {
		isNew := !seen[dir]
		if seen[dir] = true; isNew {
			folders = append(folders, dir)
		}
		return isNew
	}
	add(worktree)
	add(real)
	for _, c := range configs {
		for _, e := range c.entries {
			if e.key != "core.worktree" || named[e.value] {
				continue
			}
			named[e.value] = true
			if err := context.Cause(f.ctx); err != nil {
				return nil, err
			}
			dir, err := filepath.EvalSymlinks(join(real, e.value))
			if err == nil && !IsHomeOrRoot(dir, f.home) && add(dir) {
				f.enqueue(dir, false)
			}
		}
	}
	return folders, nil
}

// hookFiles looks for hooks in a folder. In one that is too large there can be some.
// One that cannot be listed is refused when it is searched for configuration.
func (f *finder) hookFiles(dir string) error {
	if f.trusted || f.seen["hooks "+dir] {
		return nil
	}
	f.seen["hooks "+dir] = true
	folder, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
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

// config reads a configuration file and those it includes, under whatever condition. It
// returns nil for one that does not exist.
func (f *finder) config(name string, depth int) (*configuration, error) {
	if err := context.Cause(f.ctx); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return nil, nil // git cannot read it either
	}
	key := filepath.Join(dir, filepath.Base(name))
	if c, ok := f.configs[key]; ok {
		return c, nil
	}
	if f.configs == nil {
		f.configs = make(map[string]*configuration)
	}
	f.configs[key] = nil
	text, err := readFile(name)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, f.unreadable(name, err)
	}
	if f.tooMuch(text) {
		return nil, f.refusal(name, "more than %d files or %d bytes of git configuration", maxFiles, maxBytes)
	}
	c := &configuration{name: name}
	f.configs[key] = c
	if c.entries, err = parse(text); err != nil {
		return nil, f.refusal(name, "%v", err)
	}
	for _, e := range c.entries {
		if path, ok := include(e); ok {
			if err := f.include(c, e.key, path, depth); err != nil {
				return nil, err
			}
		}
		r := ruleFor(e)
		if r == nil || f.trusted {
			continue
		}
		if r.refuse {
			return nil, refusal(name, "%s runs a program, and nothing overrides it", e.key)
		}
		f.found = append(f.found, found{e, name, r})
	}
	return c, nil
}

// tooMuch counts a file and reports whether the limits are exceeded.
func (f *finder) tooMuch(text []byte) bool {
	f.bytes += len(text)
	f.files++
	return f.files > maxFiles || f.bytes > maxBytes
}

// include reads a file that c includes.
func (f *finder) include(c *configuration, key, path string, depth int) error {
	target, err := f.included(c.name, path)
	if err != nil || depth == maxDepth {
		return f.refusal(c.name, "%s cannot be followed", key)
	}
	more, err := f.config(target, depth+1)
	if more != nil {
		c.includes = append(c.includes, more)
	}
	return err
}

// flat returns the configurations and those they include, each once.
func (f *finder) flat(configs []*configuration) ([]*configuration, error) {
	seen := make(map[*configuration]bool)
	for i := 0; i < len(configs); i++ {
		if err := context.Cause(f.ctx); err != nil {
			return nil, err
		}
		for _, c := range configs[i].includes {
			if !seen[c] {
				seen[c] = true
				configs = append(configs, c)
			}
		}
	}
	return configs, nil
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

// readPath reads a file that has a path. The path ends at the first NUL, as for git.
func readPath(name string) (string, error) {
	text, err := readFile(name)
	return untilNUL(strings.TrimRight(string(text), "\r\n")), err
}

func untilNUL(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// isAbsent reports whether a file could not be read since it does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cause returns err without the name of the file.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
