package instructions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/tree"
)

// lockWait bounds the wait for the lock of a workdir. Our locks are held for
// milliseconds.
const lockWait = 3 * time.Second

// errLocked is why tryLock fails when another process has the lock.
var errLocked = statefile.ErrLocked

// lockWorkdir keeps other runs from changing the workdir of root until release is
// called. The lock of the directory itself leaves no file and ends with the process.
//
// After lockWait, or when the budget is spent, it continues without the lock: then the
// program that started this process holds it, as "flock . bus-agent run" does, and
// serializes runs already. The next call for this directory does not wait, until one
// got the lock. A file system without locks is treated the same. Without the lock a
// lost race is an error, and never costs others a byte.
func lockWorkdir(b *tree.Budget, root *os.Root) (release func()) {
	return lockWithin(b, root, lockWait)
}

// heldByOthers has the directories whose lock another program held too long.
var heldByOthers sync.Map

func lockWithin(b *tree.Budget, root *os.Root, wait time.Duration) (release func()) {
	for deadline := time.Now().Add(wait); ; {
		f, err := tryLock(root, ".")
		if err == nil {
			heldByOthers.Delete(identity(root))
			return func() { unlock(f) }
		}
		if !errors.Is(err, errLocked) {
			return func() {}
		}
		id := identity(root)
		if _, before := heldByOthers.Load(id); before || time.Now().After(deadline) {
			heldByOthers.Store(id, true)
			return func() {}
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-b.Done(): // only the clean-up is left
			heldByOthers.Store(id, true)
			return func() {}
		}
	}
}

// A directory identifies a directory. Its name is a part of that because the inode
// number of a removed directory is used again.
type directory struct{ name, number string }

func identity(root *os.Root) directory {
	d := directory{name: root.Name()}
	if info, err := root.Stat("."); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			d.number = fmt.Sprint(stat.Dev, stat.Ino)
		}
	}
	return d
}

// tryLock takes the exclusive lock of a directory if it is free.
func tryLock(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := statefile.TryLock(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

// unlock releases the lock of tryLock explicitly, because a process that is being
// started holds a copy of the descriptor for a moment.
func unlock(f *os.File) {
	_ = statefile.Unlock(f)
	f.Close()
}
