package runner

import "time"

// busyCheck is the time between two checks while a consumer is busy.
const busyCheck = 20 * time.Millisecond

// limits are what the watch waits for.
type limits struct {
	silence time.Duration // of an agent that reported its result and does not exit
	idle    time.Duration // without progress; zero: no limit
}

// watch ends the run when the agent shows no progress, or when it reported its result
// and then stays silent without exiting. The returned function stops watching.
func (o *output) watch(l limits) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(o.nextCheck(l))
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-o.wake:
			case <-timer.C:
			}
			if o.busy.Load() {
				timer.Reset(max(o.nextCheck(l), busyCheck))
				continue
			}
			now := time.Since(o.clock)
			if o.done.Load() && now-time.Duration(o.arrived.Load()) >= l.silence {
				o.stop(errDoneNoExit)
				return
			}
			if l.idle > 0 && now-time.Duration(o.progress.Load()) >= l.idle {
				o.limit(errIdle)
				return
			}
			timer.Reset(o.nextCheck(l))
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// limit ends the run for cause, or with errDoneNoExit if the agent has reported its
// result.
func (o *output) limit(cause error) {
	if o.done.Load() {
		cause = errDoneNoExit
	}
	o.stop(cause)
}

// nextCheck returns the time until the next check; a result ends the wait earlier.
func (o *output) nextCheck(l limits) time.Duration {
	now := time.Since(o.clock)
	next := time.Hour
	if o.done.Load() {
		next = time.Duration(o.arrived.Load()) + l.silence - now
	}
	if l.idle > 0 {
		next = min(next, time.Duration(o.progress.Load())+l.idle-now)
	}
	return max(next, time.Millisecond)
}
