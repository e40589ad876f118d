package instructions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/internal/unix"
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
// race that is lost to another process is an error, and never costs others a byte. Runs
// of this process take turns in any case.
func lockWorkdir(b *tree.Budget, root *os.Root) (release func()) {
	return lockWithin(b, root, lockWait)
}

// heldByOthers has the directories whose lock another program held too long.
var heldByOthers sync.Map

func lockWithin(b *tree.Budget, root *os.Root, wait time.Duration) (release func()) {
	id := identity(root)
	done := await(b, id)
	f := lockDirectory(b, root, id, wait)
	return func() {
		if f != nil {
			unlock(f)
		}
		done()
	}
}

// turns holds a queue for each directory that has users in this process.
var turns = struct {
	sync.Mutex
	of map[directory]*queue
}{of: make(map[directory]*queue)}

// A queue gives its users turns in their order, unlike the lock, which is tried again and
// again.
type queue struct {
	users int
	slot  chan struct{} // full during a turn
}

// await waits for the turn of the caller, until the budget is spent: then only the
// clean-up is left. The caller calls done at the end of the turn.
func await(b *tree.Budget, id directory) (done func()) {
	turns.Lock()
	q := turns.of[id]
	if q == nil {
		q = &queue{slot: make(chan struct{}, 1)}
		turns.of[id] = q
	}
	q.users++
	turns.Unlock()
	leave := func() {
		turns.Lock()
		defer turns.Unlock()
		if q.users--; q.users == 0 {
			delete(turns.of, id)
		}
	}
	select {
	case q.slot <- struct{}{}: // also where the budget is spent
	default:
		select {
		case q.slot <- struct{}{}:
		case <-b.Done():
			return leave
		}
	}
	return func() {
		<-q.slot
		leave()
	}
}

// lockDirectory returns the lock, or nil to continue without it.
func lockDirectory(b *tree.Budget, root *os.Root, id directory, wait time.Duration) *os.File {
	for deadline := time.Now().Add(wait); ; {
		f, err := tryLock(root, ".")
		if err == nil {
			heldByOthers.Delete(id)
			return f
		}
		if !errors.Is(err, errLocked) {
			return nil
		}
		if _, before := heldByOthers.Load(id); before || time.Now().After(deadline) {
			heldByOthers.Store(id, true)
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-b.Done():
			heldByOthers.Store(id, true)
			return nil
		}
	}
}

// A directory identifies a directory. Its name is a part of that because the inode
// number of a removed directory is used again.
type directory struct{ name, number string }

func identity(root *os.Root) directory {
	d := directory{name: root.Name()}
	if info, err := root.Stat("."); err == nil {
		if stat, ok := info.Sys().(*unix.SysStat); ok {
			d.number = fmt.Sprint(stat.Dev, stat.Ino)
		}
	}
	return d
}

// tryLock takes the exclusive lock of a directory if it is free.
func tryLock(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
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
