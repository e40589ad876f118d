package instructions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/tree"
)

var (
	// ErrTooLarge: a file has more bytes than the limit.
	ErrTooLarge = statefile.ErrTooLarge
	// ErrUnparsable: a settings file does not parse. It was not changed.
	ErrUnparsable = errors.New("file does not parse")
	// ErrNotRegular: the file to change is not regular, for example a symlink. It
	// was not changed.
	ErrNotRegular = statefile.ErrNotRegular
	// ErrEdited: an addition was changed since and cannot be removed. It was not
	// changed.
	ErrEdited = errors.New("changed since it was added")
	// ErrName: a name is not a path below its directory.
	ErrName = errors.New("a path that is not relative or leads up")
)

// A Workspace is a workdir that adapters add to. It goes through one os.Root, so no
// symlink leads out of the workdir, whatever happens to its directories; such a write
// is an error. Existing bytes are never changed.
//
// Its methods may be called by several goroutines at once, and several processes may
// have the same workdir open.
type Workspace struct {
	chain  Chain
	root   *os.Root
	dryRun bool

	mu      sync.Mutex
	budget  *tree.Budget
	actions []string
	made    map[string]bool // directories that were made for homes
	undo    []func() error  // remove the additions
}

// Open opens the workdir of chain. In a dry run nothing is written, and Actions lists
// what would have been.
//
// The caller closes the Workspace, after the Setup made with it.
func Open(chain Chain, dryRun bool) (*Workspace, error) {
	root, err := os.OpenRoot(chain.Workdir)
	if err != nil {
		return nil, fmt.Errorf("instructions: %w", err)
	}
	return &Workspace{chain: chain, root: root, dryRun: dryRun, budget: tree.NewBudget(context.Background(), tree.Default)}, nil
}

// Bound limits the further work of the Workspace and its Homes to the time of ctx and
// the budget in it. Work beyond that fails, or stays for a later sweep.
func (w *Workspace) Bound(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = tree.Of(ctx)
}

// bounds returns the current budget.
func (w *Workspace) bounds() *tree.Budget {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.budget
}

// Chain returns the instruction files of the workdir. The caller must not
// change it.
func (w *Workspace) Chain() Chain { return w.chain }

// Actions lists what was written, or in a dry run would be: one line each, beginning
// with the path, relative to the workdir if it is in it.
func (w *Workspace) Actions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.actions)
}

func (w *Workspace) note(name, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actions = append(w.actions, display(name)+": "+fmt.Sprintf(format, args...))
}

func (w *Workspace) added(undo func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.undo = append(w.undo, undo)
}

// Undo removes what [Workspace.AddToJSON] and [Workspace.AddBlock] have added through
// w, the last first, for a run that did not start. Call it after the homes are
// removed; a second call does nothing.
func (w *Workspace) Undo() error {
	w.mu.Lock()
	undo := w.undo
	w.undo = nil
	w.mu.Unlock()
	var errs error
	for _, step := range slices.Backward(undo) {
		errs = errors.Join(errs, step())
	}
	return errs
}

// noteMade notes the directories that were made for a home below parent.
func (w *Workspace) noteMade(parent string, dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == nil {
		w.made = make(map[string]bool)
	}
	for _, dir := range leadingTo(parent, dirs) {
		w.made[dir] = true
	}
}

// newDirs returns the number of new directories above name: n that will be made, and
// those above them that exist only for a home. The last user of them removes them.
func (w *Workspace) newDirs(name string, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := path.Dir(name)
	for range n {
		dir = path.Dir(dir)
	}
	for ; w.made[dir]; dir = path.Dir(dir) {
		n++
	}
	return n
}

// Close releases the workdir. It removes nothing; a [Home] outlives it.
func (w *Workspace) Close() error { return w.root.Close() }

// ReadFile reads a regular file below the workdir. It follows symlinks that stay
// inside. A missing file is fs.ErrNotExist, one of more than limit bytes
// [ErrTooLarge], anything but a regular file [ErrNotRegular].
func (w *Workspace) ReadFile(name string, limit int64) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return readFile(w.root, name, limit)
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	return data, nil
}

// checkName returns [ErrName] unless name is a clean slash-separated path below a
// directory.
func checkName(name string) error {
	if name == "." || path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)) ||
		strings.ContainsRune(name, 0) {
		return &fs.PathError{Op: "open", Path: name, Err: ErrName}
	}
	return nil
}

// makeDirs creates the missing directories of dir and returns them, outermost first.
func makeDirs(root *os.Root, dir string) (made []string, err error) {
	if dir == "." {
		return nil, nil
	}
	err = root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if made, err = makeDirs(root, path.Dir(dir)); err != nil {
			return made, err
		}
		err = root.Mkdir(dir, 0o755)
	}
	switch {
	case err == nil:
		return append(made, dir), nil
	case !errors.Is(err, fs.ErrExist):
		return made, err
	}
	// It may be a symlink to a directory inside, which is fine.
	info, err := root.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return made, err
}

// removeDirs removes the empty ones of dirs, which are outermost first.
func removeDirs(root *os.Root, dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() || root.Remove(dir) != nil {
			return
		}
	}
}
