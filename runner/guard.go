package runner

import (
	"context"
	"reflect"
	"sync"
)

// panics carries a panic of the caller's code from the goroutines that read the
// agent's output to the caller's own, where it can be recovered and where what
// was arranged for the run is taken back first.
type panics struct {
	stop context.CancelCauseFunc

	mu    sync.Mutex
	value any
}

// guard calls f, which calls code of the caller. When that panics the agent is
// stopped and guard returns errCallback; when it ends the goroutine, as a failing
// test does, the agent is stopped too.
func (p *panics) guard(f func() (int, error)) (n int, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.value == nil {
				p.value = value
			}
		}
		n, err = 0, errCallback
		p.stop(errCallback)
	}()
	n, err = f()
	returned = true
	return n, err
}

// rethrow goes on with the first panic there was.
func (p *panics) rethrow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value != nil {
		panic(p.value)
	}
}

// same reports whether two writers are one.
func same(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) &&
		reflect.TypeOf(a).Comparable() && reflect.ValueOf(a).Comparable() && a == b
}
