package process

import (
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/testwait"
)

func TestRunsThatEndTogetherShareAScan(t *testing.T) {
	t.Parallel()
	const together = 20
	begun := make(chan horizon, together)
	release := make(chan struct{})
	tables := sharedTable{read: func(h horizon, _ marks) ([]process, error) {
		begun <- h
		<-release
		return []process{{pid: int(h.born)}}, nil
	}}
	look := func(born int) int {
		table, err := tables.since(horizon{born: uint64(born), at: time.Unix(int64(born), 0)}, 0)
		if err != nil || len(table) != 1 {
			t.Errorf("got %v, %v", table, err)
			return 0
		}
		return table[0].pid
	}
	var done sync.WaitGroup
	done.Go(func() { look(1000) })
	<-begun
	// All these come too late for the lookup in progress, and share the next.
	var results sync.Map
	for i := range together {
		done.Go(func() { results.Store(i, look(100+i)) })
	}
	testwait.Until(t, "all wait for the next look", func() (joined int, ok bool) {
		tables.mu.Lock()
		defer tables.mu.Unlock()
		if tables.next != nil {
			joined = tables.next.joined
		}
		return joined, joined == together
	})
	close(release)
	done.Wait()
	if h := <-begun; h.born != 100 {
		t.Errorf("the horizon is %d, want that of the oldest run", h.born)
	}
	if len(begun) > 0 {
		t.Errorf("%d looks more", len(begun))
	}
	results.Range(func(i, got any) bool {
		if got != 100 {
			t.Errorf("run %v got an older look: %v", i, got)
		}
		return true
	})
}
