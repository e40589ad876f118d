package process

import (
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// toolGrace is how long descendants that are ended alone may take to end by
// themselves.
const toolGrace = time.Second

// EndTools ends the descendants that have left the session of the process, as
// the tools of agents do, and leaves the process and the rest alone: SIGTERM, and
// SIGKILL to what is left after a second. It returns when they are gone, at once
// when the process ends, which ends them too.
func (p *Process) EndTools() {
	ended := make(chan struct{})
	select {
	case p.endTools <- ended:
		<-ended
	case <-p.exited:
	}
}

// serve does what is asked for until the leader has exited or is to be stopped. It
// reports whether it has exited.
func (p *Process) serve() bool {
	for {
		select {
		case <-p.exited:
			return true
		case <-p.stopping:
			return p.waitExit(p.stopping, 0) // it may have exited as well
		case ended := <-p.endTools:
			p.run.endTools(p.stopping, p.exited)
			close(ended)
		}
	}
}

// endTools ends the members outside the leader's session, unless all are to be ended.
func (r *run) endTools(stopping, exited <-chan struct{}) {
	asked := map[int]uint64{} // PID to start time
	kill := time.Now().Add(toolGrace)
	giveUp := kill.Add(sweepLimit)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-stopping:
			return
		case <-exited:
			return
		default:
		}
		alive, err := r.look()
		left := 0
		for _, m := range alive {
			if m.session == r.pid || m.session == 0 {
				continue
			}
			left++
			if born, ok := asked[m.pid]; !ok || born != m.born {
				asked[m.pid] = m.born
				signalProcess(m, unix.SIGTERM)
			} else if time.Now().After(kill) {
				signalProcess(m, unix.SIGKILL)
			}
		}
		if left == 0 && !isIncomplete(err) || time.Now().After(giveUp) {
			return
		}
		select {
		case <-time.After(pause):
		case <-stopping:
		case <-exited:
		}
	}
}
