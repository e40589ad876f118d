package instructions

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/tree"
)

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			defer lockWithin(tree.NewBudget(t.Context(), tree.Limits{}), root, time.Minute)()
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock at once", n)
			}
			runtime.Gosched()
			inside.Add(-1)
		})
	}
	wg.Wait()
}

func TestLockGivesUpOnALockThatIsNeverReleased(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	held, err := tryLock(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	lockWithin(tree.NewBudget(t.Context(), tree.Limits{}), root, 0)()
	if _, err := tryLock(root, "."); !errors.Is(err, errLocked) {
		t.Errorf("tryLock = %v: who never had the lock released it", err)
	}
	unlock(held)
	free, err := tryLock(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	unlock(free)
}

// A failed wait for the lock of a directory does not affect a new directory with the
// same inode number.
func TestLockOfANewDirectoryIsWaitedFor(t *testing.T) {
	t.Parallel()
	const wait = 20 * time.Millisecond
	parent := t.TempDir()
	for _, name := range []string{"old", "new"} { // of one directory, so with one number
		dir := filepath.Join(parent, name)
		if name == "old" {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Rename(filepath.Join(parent, "old"), dir); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		held, err := tryLock(root, ".")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		lockWithin(tree.NewBudget(t.Context(), tree.Limits{}), root, wait)()
		if took := time.Since(begun); took < wait {
			t.Errorf("the lock of the %s one is waited for for %v", name, took)
		}
		unlock(held)
	}
}

// A spent budget does not pass over a turn that is free, and a directory without users
// takes no memory.
func TestTurnsOfADirectory(t *testing.T) {
	t.Parallel()
	id := directory{name: t.Name()}
	find := func() *queue {
		turns.Lock()
		defer turns.Unlock()
		return turns.of[id]
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spent := tree.NewBudget(ctx, tree.Limits{})
	for range 20 { // each could be right by chance
		done := await(spent, id)
		if q := find(); len(q.slot) != 1 {
			t.Fatal("the free turn was passed over")
		}
		await(spent, id)() // it does not wait
		if q := find(); len(q.slot) != 1 {
			t.Fatal("the turn of another was ended")
		}
		done()
		if find() != nil {
			t.Fatal("the queue is kept")
		}
	}
}
