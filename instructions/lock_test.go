package instructions

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
			defer lockWithin(root, time.Minute)()
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock at once", n)
			}
			runtime.Gosched()
			inside.Add(-1)
		})
	}
	wg.Wait()
}

func TestLockGoesOnWithoutALockThatIsNeverReleased(t *testing.T) {
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
	lockWithin(root, 0)()
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
