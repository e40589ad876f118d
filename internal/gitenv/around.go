package gitenv

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// Around returns the folders of the repositories around dir: first the topmost folder at
// or above it that git could take for a repository or its worktree, or dir if there is
// none. A repository further down may be one that git refuses, and then it searches
// further up. The others are the main worktrees of those on the way that are linked, which
// have the same content. All are absolute and without links, if dir exists.
//
// The user's home and the root of the file system end the search and do not count.
func Around(dir, home string) []string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	around := []string{dir}
	for at := dir; !IsHomeOrRoot(at, home); at = filepath.Dir(at) {
		if main := mainWorktree(at); main != "" && !IsHomeOrRoot(main, home) && !slices.Contains(around, main) {
			around = append(around, main)
		}
		if looksLikeWorktree(at) || looksBare(at) {
			around[0] = at
		}
	}
	return around
}

// IsHomeOrRoot reports whether dir is the user's home or the root of the file system,
// which do not count as repositories. A path through dir does not make it the home: the
// repository decides where it leads.
func IsHomeOrRoot(dir, home string) bool {
	if dir == filepath.Dir(dir) || sameFile(dir, "/") {
		return true
	}
	if !filepath.IsAbs(home) || !sameFile(dir, home) {
		return false
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(home))
	real, err2 := filepath.EvalSymlinks(dir)
	return err == nil && err2 == nil && parent != real && !strings.HasPrefix(parent, real+"/")
}

func sameFile(a, b string) bool {
	var one, other unix.Stat_t
	return unix.Stat(a, &one) == nil && unix.Stat(b, &other) == nil && one.Dev == other.Dev && one.Ino == other.Ino
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

// mainWorktree returns the main worktree of the repository of which dir is a linked one,
// or "".
func mainWorktree(dir string) string {
	file := filepath.Join(dir, ".git")
	if typeOf(file) != unix.S_IFREG {
		return ""
	}
	text, err := readPath(file)
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	git := join(dir, target)
	common, err := readPath(filepath.Join(git, "commondir"))
	if err != nil {
		return ""
	}
	git, err = filepath.EvalSymlinks(join(git, common))
	if err != nil || filepath.Base(git) != ".git" || !looksBare(git) {
		return ""
	}
	return filepath.Dir(git)
}
