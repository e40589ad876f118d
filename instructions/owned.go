package instructions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/internal/tree"
)

// Owned describes what bus-agent can add to a workdir. Any of its fields may be set; a
// block and a list entry next to a home are in use while one of the homes is.
type Owned struct {
	Home  string    // parent of private homes, for example ".codex/bus"
	Block *Block    // Text may be empty
	JSON  *JSONList // a list entry
}

// A Found is an existing addition, or one that [Clean] removed.
type Found struct {
	Path string // relative to the workdir, slash-separated
	What string // description, for example "block agents-md"
	// InUse reports that a live run uses it; Clean keeps it.
	InUse bool
	// Problem is why Clean keeps it although it is not in use, or empty.
	Problem string
}

// Show lists the existing additions of owned. It changes nothing. The error means that
// the workdir, or something in it, cannot be read; the list has what was found.
func Show(ctx context.Context, workdir string, owned []Owned) ([]Found, error) {
	return survey(ctx, workdir, owned, false)
}

// Clean removes the additions of owned and lists them, and those it kept: additions
// that a live run uses and those changed since. It removes kept files too. Other bytes
// stay.
//
// The error reports what could not be removed; everything else is removed and listed.
// When ctx ends, the rest stays, which is an error.
func Clean(ctx context.Context, workdir string, owned []Owned) ([]Found, error) {
	return survey(ctx, workdir, owned, true)
}

func survey(ctx context.Context, workdir string, owned []Owned, clean bool) ([]Found, error) {
	root, err := os.OpenRoot(workdir)
	if err != nil {
		return nil, fmt.Errorf("instructions: %w", err)
	}
	defer root.Close()
	budget := tree.NewBudget(ctx, sweeping)
	var all []Found
	var errs []error
	for _, o := range owned {
		inUse := func() bool { return o.Home != "" && homes(o.Home).inUse(budget, root) }
		var steps []func() ([]Found, error)
		if o.Home != "" {
			steps = append(steps, func() ([]Found, error) { return homes(o.Home).survey(budget, root, clean) })
		}
		if o.Block != nil {
			steps = append(steps, func() ([]Found, error) { return o.Block.survey(budget, root, clean, inUse) })
		}
		if o.JSON != nil {
			steps = append(steps, func() ([]Found, error) { return o.JSON.survey(budget, root, clean, inUse) })
		}
		for _, step := range steps {
			found, err := step()
			if err != nil && !isAbsent(err) {
				errs = append(errs, err)
			}
			for _, f := range found {
				if !slices.Contains(all, f) {
					all = append(all, f)
				}
			}
		}
	}
	return all, errors.Join(errs...)
}

// isAbsent reports whether err means that the file does not exist: a parent of the
// path can also be a file.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (b Block) survey(budget *tree.Budget, root *os.Root, clean bool, inUse func() bool) ([]Found, error) {
	if err := errors.Join(b.check(), checkName(b.Path)); err != nil {
		return nil, err
	}
	found := Found{Path: b.Path, What: "block " + b.Name}
	data, err := readOwn(root, b.Path)
	if err != nil || data == nil {
		return nil, err
	}
	have, err := b.find(data)
	switch {
	case errors.Is(err, ErrEdited):
		found.Problem = "it was " + err.Error()
		return []Found{found}, nil
	case have == nil:
		return nil, nil
	case clean:
		var removed bool
		removed, err = removeBlock(budget, root, b, false, inUse)
		found.InUse = !removed && err == nil && inUse()
	default:
		found.InUse = inUse()
	}
	return []Found{found}, err
}

func (j JSONList) survey(budget *tree.Budget, root *os.Root, clean bool, inUse func() bool) ([]Found, error) {
	if err := errors.Join(j.check(), checkName(j.Path)); err != nil {
		return nil, err
	}
	found := Found{Path: j.Path, What: fmt.Sprintf("%q in %s", j.Value, strings.Join(j.Keys, "."))}
	data, err := readOwn(root, j.Path)
	if err != nil || data == nil {
		return nil, err
	}
	owned, err := j.owned(data)
	switch {
	case err != nil && bytes.Contains(data, []byte(ownedKey)):
		found.Problem = err.Error()
		return []Found{found}, nil
	case err != nil || !owned:
		return nil, nil
	case clean:
		var removed bool
		removed, err = removeFromJSON(budget, root, j, false, inUse)
		found.InUse = !removed && err == nil && inUse()
	default:
		found.InUse = inUse()
	}
	return []Found{found}, err
}

// readOwn reads a file that may have an addition; nil if there is none. Only regular
// files have additions.
func readOwn(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > editLimit {
		return nil, err
	}
	return readFile(root, name, editLimit)
}

// homes is the parent of private homes.
type homes string

func (parent homes) survey(b *tree.Budget, root *os.Root, clean bool) (found []Found, err error) {
	if err := checkName(string(parent)); err != nil {
		return nil, err
	}
	defer lockWorkdir(b, root)()
	base, err := root.OpenRoot(string(parent))
	if err != nil {
		return nil, err
	}
	defer base.Close()
	names, err := homeNames(b, base)
	if err != nil {
		return nil, err
	}
	inUse := false
	for _, name := range names {
		f, stale := parent.home(base, name)
		found = append(found, f)
		inUse = inUse || f.InUse
		if stale != nil && clean {
			err = errors.Join(err, removeTree(b, base, name, nil))
		}
		if stale != nil {
			stale()
		}
	}
	if hasKept(base) {
		found = append(found, Found{Path: path.Join(string(parent), keptDir), What: "kept sessions", InUse: inUse})
		if clean && !inUse {
			err = errors.Join(err, removeTree(b, base, keptDir, nil))
		}
	}
	if text, readErr := readFile(base, ignoreName, 1<<16); readErr == nil && len(found) == 0 {
		if _, ours := parseIgnore(string(text)); ours {
			found = append(found, Found{Path: string(parent), What: "directory for private homes"})
		}
	}
	if clean {
		removeBase(root, base, string(parent))
	}
	return found, err
}

// hasKept reports whether files were kept; the directory for them may be empty.
func hasKept(base *os.Root) bool {
	info, err := base.Lstat(keptDir)
	if err != nil || !info.IsDir() {
		return false
	}
	kept, err := base.OpenRoot(keptDir)
	if err != nil {
		return true
	}
	defer kept.Close()
	return !holdsOnly(kept)
}

// inUse reports whether a live run uses one of the homes. Under the lock of the
// workdir this does not change: homes are made under it.
func (parent homes) inUse(b *tree.Budget, root *os.Root) bool {
	base, err := root.OpenRoot(string(parent))
	if err != nil {
		return false
	}
	defer base.Close()
	names, err := homeNames(b, base)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		f, release := parent.home(base, name)
		if release != nil {
			release()
		}
		return f.InUse
	})
}

// homeNames returns the names of the homes below their parent.
func homeNames(b *tree.Budget, base *os.Root) (names []string, err error) {
	err = tree.Each(b, base, func(entry fs.DirEntry) error {
		if entry.IsDir() && isHomeName(entry.Name()) {
			names = append(names, entry.Name())
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// home examines one home. It holds the lock of an unused home until release is called,
// so that it can be removed.
func (parent homes) home(base *os.Root, name string) (f Found, release func()) {
	f = Found{Path: path.Join(string(parent), name), What: "private home"}
	lock, err := tryLock(base, name)
	switch {
	case err == nil:
		return f, func() { unlock(lock) }
	case errors.Is(err, fs.ErrPermission):
		return f, func() {} // a run could have opened it
	}
	f.InUse = true
	return f, nil
}
