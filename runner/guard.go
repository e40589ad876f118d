package runner

import (
	"context"
	"sync"
)

// panics carries a panic of the caller's code from the goroutines that read the agent's
// output to the goroutine of the caller, which can recover it after the run is cleaned
// up.
type panics struct {
	stop context.CancelCauseFunc

	mu    sync.Mutex
	value any
	err   error // a goroutine was ended
}

// guard calls f, which calls code of the caller. If that panics, or ends the goroutine
// as a failing test does, guard stops the agent and returns errCallback.
func (p *panics) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.value == nil {
			p.value = value
		}
		p.err, err = errCallback, errCallback
		p.stop(errCallback)
	}()
	err = f()
	returned = true
	return err
}

// happened reports whether a callback did not return.
func (p *panics) happened() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// rethrow resumes the first panic. The error is errCallback when a callback ended
// its goroutine without one.
func (p *panics) rethrow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value != nil {
		panic(p.value)
	}
	return p.err
}
