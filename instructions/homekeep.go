package instructions

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/internal/unix"
)

// staleKeepName is the file of a home with its staleKeep.
const staleKeepName = ".bus-agent-salvage"

// A staleKeep lists the files to keep from a stale home.
type staleKeep struct {
	Tree     string   `json:"tree"`
	Kept     string   `json:"kept"`
	Patterns []string `json:"patterns"`
}

// KeepIfStale sets what is kept, as by [Home.Keep], if the process is killed and the
// stale home is removed later: the files and trees below tree, a directory of the
// home, that match one of the patterns of path.Match. They keep their names below
// kept; "." means the kept files themselves. Nothing is kept from a temporary home.
func (h *Home) KeepIfStale(tree, kept string, patterns ...string) error {
	if h.w.dryRun || h.temporary() {
		return nil
	}
	if !h.open {
		return fs.ErrClosed
	}
	s := staleKeep{Tree: tree, Kept: kept, Patterns: patterns}
	if err := s.check(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return errors.Join(removeOld(h.root, staleKeepName), writeNew(h.root, staleKeepName, text, 0o600))
}

func (s staleKeep) check() error {
	err := checkName(s.Tree)
	if s.Kept != "." {
		err = errors.Join(err, checkName(s.Kept))
	}
	for _, p := range s.Patterns {
		_, badPattern := path.Match(p, "")
		err = errors.Join(err, checkName(p), badPattern)
	}
	return err
}

// keepOfStale keeps the files listed in the staleKeep of a home. The agent could write
// there: paths stay within base, invalid lists are ignored, and files that are too
// deep or too large for a session, or whose place is taken, are left out. An error is
// one after which a later call can succeed. The workdir is locked.
func keepOfStale(b *tree.Budget, base *os.Root, name string) error {
	text, err := readFile(base, path.Join(name, staleKeepName), 1<<16)
	var s staleKeep
	if passes(err) {
		return err
	}
	if err != nil || json.Unmarshal(text, &s) != nil || s.check() != nil {
		return nil
	}
	home, err := base.OpenRoot(path.Join(name, s.Tree))
	if passes(err) {
		return err
	}
	if err != nil {
		return nil // there is nothing to keep
	}
	defer home.Close()
	var errs error
	found := false
	for _, p := range s.Patterns {
		matches, err := tree.Glob(b, home, p)
		for _, m := range matches {
			found = true
			skipped, keepErr := keepTree(b, base, path.Join(name, s.Tree, m), path.Join(keptDir, s.Kept, m))
			err = worse(worse(err, keepErr), skipped)
		}
		if spent := b.Spent(); spent != nil {
			return spent
		}
		if passes(err) {
			errs = errors.Join(errs, err)
		}
	}
	if !found || hides(base) {
		return errs
	}
	if err := ignoreDir(base, keptDir); passes(err) {
		errs = errors.Join(errs, err)
	}
	return errs
}

// errRights is an error of the user's rights, not of those that an agent has taken away.
var errRights = errors.New("there is no right to keep it")

// passes reports whether an error is of the disk, the process or the user's rights, and not
// of what an agent has made.
func passes(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), passes)
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	return errors.Is(err, errRights) || ok && !slices.Contains([]syscall.Errno{
		unix.EACCES, unix.EPERM, unix.EEXIST, unix.ENOTEMPTY, unix.EISDIR, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.ENOENT, unix.EINVAL,
	}, errno)
}

// worse returns the first of two errors, or the second if it passes and the first does not.
func worse(first, second error) error {
	if first == nil || passes(second) && !passes(first) {
		return second
	}
	return first
}

// hides reports whether the parent of homes is hidden from git as a whole.
func hides(base *os.Root) bool {
	text, err := readFile(base, ignoreName, 1<<16)
	if err != nil {
		return false
	}
	_, ours := parseIgnore(string(text))
	return ours
}

// removeHome removes the stale home of that name below base, after keeping its files.
func removeHome(b *tree.Budget, base *os.Root, name string) error {
	if err := keepOfStale(b, base, name); err != nil {
		return err
	}
	return removeTree(b, base, name, nil)
}
