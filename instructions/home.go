package instructions

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/busdk/bus-agent/internal/process"
)

const (
	// keptDir is the directory of the kept files, below the parent.
	keptDir = "sessions"
	// placeholder is the name of a home in a dry run.
	placeholder = "<home>"
)

// A Home is a private directory of one run for a CLI that needs its own home:
// <workdir>/<parent>/<number>, readable by the user alone. It is always new, so it has
// nothing from the repository or an earlier run. Its number is the first that is free:
// equal runs, one after another, have equal paths, because CLIs send the path to the
// model, and a changing one defeats the provider's prompt cache. Files are kept from
// run to run in <workdir>/<parent>/sessions.
//
// While it exists the process holds a lock on it, which ends with the process. The
// next home below the parent removes a stale one, see [Locations.Stale]; [Clean]
// removes all that are not locked. Files have slash-separated paths relative to the
// home, or to the kept files; any other name is [ErrName]. All access stays inside
// <workdir>/<parent>, whatever symlinks exist.
//
// A Home is used by one goroutine at a time. In a dry run its methods only list what
// they would write; FindKept works as usual.
type Home struct {
	w      *Workspace
	dir    string // absolute, the workdir unless the home is a temporary one
	parent string // relative to dir
	name   string
	path   string

	// All nil in a dry run.
	top   *os.Root       // dir
	base  *os.Root       // the parent
	root  *os.Root       // the home
	lock  *os.File       // nil also where there are no locks
	claim *process.Claim // as lock

	hidden bool // the parent's .gitignore is ours
	open   bool // made and not yet removed
}

// newHome makes a private home below parent.
func (w *Workspace) newHome(parent string) (*Home, error) {
	if err := checkName(parent); err != nil {
		return nil, err
	}
	h := &Home{w: w, dir: w.chain.Workdir, parent: parent, name: placeholder}
	return h.create(func() (*os.Root, error) { return w.root.OpenRoot(".") })
}

// RunHome makes the private home of a run below parent, a path relative to the workdir
// such as ".codex/bus", and a .gitignore in parent that hides everything there from git,
// unless there is one. If nothing can be written there, it makes the home next to
// tempDir, the folder of the run's temporary files: the agent's tools may write in
// tempDir itself. The warning then says that nothing can be kept from such a home. A run
// that resumes a session, or has no tempDir, gets the error instead.
//
// After an error, for example because a symlink leads out of the workdir or the disk
// is read-only, nothing is left behind.
func (w *Workspace) RunHome(parent, tempDir string, resumes bool) (home *Home, warning string, err error) {
	if home, err = w.newHome(parent); err == nil {
		return home, "", nil
	}
	if tempDir == "" || resumes {
		return nil, "", err
	}
	home, tempErr := w.newTempHome(filepath.Dir(tempDir))
	if tempErr != nil {
		return nil, "", errors.Join(err, tempErr)
	}
	return home, err.Error() + "; it is a temporary one, so this session cannot be resumed", nil
}

// newTempHome makes a private home in a new directory below dir, an absolute path
// outside the workdir.
func (w *Workspace) newTempHome(dir string) (*Home, error) {
	h := &Home{w: w, dir: dir, parent: process.TempPrefix + "*", name: placeholder}
	return h.create(func() (*os.Root, error) { return os.OpenRoot(dir) })
}

// temporary reports whether the home is outside the workdir.
func (h *Home) temporary() bool { return h.dir != h.w.chain.Workdir }

func (h *Home) create(open func() (*os.Root, error)) (_ *Home, err error) {
	if !h.w.dryRun {
		if h.top, err = open(); err == nil {
			err = h.make()
		}
		if err != nil {
			h.closeAll()
			return nil, fmt.Errorf("making a private home in %s: %w", h.parent, err)
		}
	}
	h.path = filepath.Join(h.dir, filepath.FromSlash(h.parent), h.name)
	h.note("", "private home, removed at the end of the run")
	return h, nil
}

// note adds name in the home to [Workspace.Actions]; in a temporary home, by its
// absolute path.
func (h *Home) note(name, what string) {
	file := path.Join(h.parent, h.name, name)
	if h.temporary() {
		file = path.Join(filepath.ToSlash(h.path), name)
	}
	h.w.note(file, "%s", what)
}

func (h *Home) make() (err error) {
	defer lockWorkdir(h.w.bounds(), h.top)()
	made, err := h.makeParent()
	if err != nil {
		removeDirs(h.top, made)
		return err
	}
	defer func() {
		if err != nil {
			if h.root != nil {
				h.base.RemoveAll(h.name)
			}
			removeBase(h.top, h.base, h.parent)
			removeDirs(h.top, made) // without a .gitignore that names them
		}
	}()
	removeStaleHomes(h.w.bounds(), h.base)
	var all []string
	if h.hidden, all, err = ignoreAll(h.base, made); err != nil {
		return err
	}
	h.w.noteMade(h.parent, all)
	// It exists for every run, or the first would list other folders to the model.
	if err := h.base.Mkdir(keptDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.name, h.root, err = process.MakeFolder(h.base, homeName); err != nil {
		return err
	}
	if !h.hidden {
		if err := ignoreDir(h.base, h.name); err != nil {
			return err
		}
	}
	// A file system without locks is not an error: Clean reports it.
	h.lock, _ = tryLock(h.root, ".")
	h.claim, _ = process.ClaimFolder(h.root)
	h.open = true
	return nil
}

// makeParent opens the parent, and returns the directories that were made for it. That
// of a temporary home is always new, since other users can write next to it.
func (h *Home) makeParent() (made []string, err error) {
	if h.temporary() {
		hash := sha256.Sum256([]byte(h.w.chain.Workdir))
		first := binary.BigEndian.Uint64(hash[:])
		h.parent, h.base, err = process.MakeFolder(h.top, func(n uint64) string { return process.TempPrefix + homeName(first+n) })
		return []string{h.parent}, err
	}
	if made, err = makeDirs(h.top, h.parent); err == nil {
		h.base, err = h.top.OpenRoot(h.parent)
	}
	return made, err
}

// randomName returns an unpredictable name.
func randomName() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

// homeName returns the name of the home with that number.
func homeName(n uint64) string { return fmt.Sprintf("%016x", n) }

// isHomeName reports whether a directory with that name is a home.
func isHomeName(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 8
}

// Path returns the absolute path of the home. In a dry run its last element is
// a placeholder.
func (h *Home) Path() string { return h.path }

// WriteFile writes a file of the home with exactly the mode perm, replacing an
// existing one. It makes the directories above it.
func (h *Home) WriteFile(name string, data []byte, perm os.FileMode) error {
	return h.add(name, fmt.Sprintf("%d bytes", len(data)), func() error {
		if err := removeOld(h.root, name); err != nil {
			return err
		}
		return writeNew(h.root, name, data, perm)
	})
}

// Link makes name a symlink to target, an absolute path that usually is outside the
// workdir, such as the user's login. The target need not exist.
func (h *Home) Link(target, name string) error {
	if !filepath.IsAbs(target) {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: errors.New("the target is not absolute")}
	}
	return h.add(name, "link to "+display(target), func() error { return h.root.Symlink(target, name) })
}

// add makes the parents of name, then name, and notes it.
func (h *Home) add(name, what string, make func() error) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !h.w.dryRun {
		if !h.open {
			return fs.ErrClosed
		}
		if err := h.root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		if err := make(); err != nil {
			return err
		}
	}
	h.note(name, what)
	return nil
}

// LinkReplaced reports whether the link that [Home.Link] made at name is not a link
// any more, so that the CLI's writes did not reach the target.
func (h *Home) LinkReplaced(name string) bool {
	if checkName(name) != nil || !h.open {
		return false
	}
	info, err := h.root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink == 0
}

func (h *Home) closeAll() {
	h.open = false
	if h.lock != nil {
		unlock(h.lock)
		h.lock = nil
	}
	h.claim.Release()
	h.claim = nil
	for _, root := range []*os.Root{h.root, h.base, h.top} {
		if root != nil {
			root.Close()
		}
	}
}
