package delegation

import (
	"sync"
	"time"
)

// A budget counts what agents may still consume.
type budget struct {
	runs, concurrent int           // limits, for messages
	timeout          time.Duration // of one run or turn

	mu      sync.Mutex
	used    int           // runs and messages
	running int           // agents
	left    time.Duration // of the time of all, without what is reserved
}

// agent counts an agent that starts; its end is reported by the returned function.
func (b *budget) agent() (ended func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running >= b.concurrent {
		return nil, limitf("%d agents are running, which is the limit: wait for one to end, or stop a session", b.running)
	}
	b.running++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	}), nil
}

// again counts a further run in the time of a turn.
func (b *budget) again() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used >= b.runs {
		return b.spent()
	}
	b.used++
	return nil
}

func (b *budget) spent() error { return limitf("all %d runs and messages are used", b.runs) }

// turn counts a run or message and returns how long it may take: want, or the limit if
// that is zero or more than it. Its end is reported by the returned function.
func (b *budget) turn(want time.Duration) (limit time.Duration, ended func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit = min(b.timeout, b.left)
	if want > 0 {
		limit = min(limit, want)
	}
	switch {
	case b.used >= b.runs:
		return 0, nil, b.spent()
	case limit <= 0:
		return 0, nil, limitf("the time of all runs is used")
	}
	b.used++
	b.left -= limit
	begun := time.Now()
	return limit, sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left += max(0, limit-time.Since(begun))
	}), nil
}

// runsLeft returns how many runs and messages are left.
func (b *budget) runsLeft() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs - b.used
}
