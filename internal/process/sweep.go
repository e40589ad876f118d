package process

import (
	"slices"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// terminate asks the process to end, and makes its group end if it does not
// within the grace. Then its descendants may end by themselves for a while.
func (p *Process) terminate() {
	p.run.look() // once it has exited, less shows who its descendants are
	p.run.signalGroup(unix.SIGTERM)
	if !p.waitExit(nil, max(p.grace, 1)) {
		p.run.signalGroup(unix.SIGKILL)
		p.waitExit(nil, sweepLimit)
	}
	deadline := time.Now().Add(p.settle)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 20*time.Millisecond) {
		if alive, err := p.run.look(); len(alive) == 0 && !isIncomplete(err) {
			return
		}
		time.Sleep(pause)
	}
}

// look returns the descendants that are alive, and reaps dead ones that this
// process has adopted. If isIncomplete(err), there may be more; any other error
// means that they are not known.
func (r *run) look() ([]process, error) {
	table, err := r.tables.since(r.from, r.mark)
	if err != nil && !isIncomplete(err) {
		return nil, err
	}
	var alive []process
	for _, m := range r.members(table) {
		switch {
		case !m.dead:
			alive = append(alive, m)
		case m.parent == self().pid:
			reapAdopted(m)
		}
	}
	return alive, err
}

// sweep kills the descendants until none is left alive, and the group of the
// leader with them. It returns how many it killed and how many it could not end
// within the limit. The leader must not be reaped.
func (r *run) sweep() (swept, survived int) {
	hunt := newHunt(sweepLimit, chaseLimit)
	killed := hunt.killed
	for round := 0; ; round++ {
		before := hunt.found
		if round > 0 {
			r.freeze()
		}
		r.killAdopted(hunt)
		alive, err := r.look()
		// The youngest first: what flees by forking is soon gone.
		for _, m := range slices.Backward(alive) {
			hunt.find(m.pid, m.born)
			if signalProcess(m, unix.SIGKILL) {
				killed[m.pid] = m.born
			}
		}
		r.signalGroup(unix.SIGKILL)
		if len(alive) == 0 && !isIncomplete(err) {
			return len(killed), 0
		}
		if round >= leastLooks && hunt.over() {
			survived = len(alive)
			if err == errNoFiles {
				survived = max(survived, 1) // what cannot be seen may be there
			}
			return len(killed) - surviving(killed, alive), survived
		}
		if round > 0 && (hunt.found > before || err != nil) {
			chase(func(mark uint64) bool { return mark == r.mark }, r.proves) // there are new ones
		}
		time.Sleep(min(time.Duration(round)*50*time.Microsecond, 10*time.Millisecond))
	}
}

// A hunt records what was killed, and bounds the time in which to look for more: it is
// over when no other process was found for a time, or at the end. One that was found
// counts even if it was gone before it could be killed: it may have left others.
type hunt struct {
	killed map[int]uint64 // PID to start time
	seen   map[int]uint64 // PID to start time
	found  int            // number of processes
	before int            // found, when over was last called
	idle   time.Duration  // without another one
	giveUp time.Time      // moves with each other one
	end    time.Time
}

func newHunt(idle, most time.Duration) *hunt {
	now := time.Now()
	return &hunt{killed: make(map[int]uint64), seen: make(map[int]uint64), idle: idle, giveUp: now.Add(idle), end: now.Add(most)}
}

// find counts a process once.
func (h *hunt) find(pid int, born uint64) {
	if h.seen[pid] != born {
		h.seen[pid] = born
		h.found++
	}
}

func (h *hunt) over() bool {
	now := time.Now()
	if h.found > h.before {
		h.before, h.giveUp = h.found, now.Add(h.idle)
	}
	return now.After(h.giveUp) || now.After(h.end)
}

// freeze stops the members that are alive. What is stopped cannot fork, and still
// counts as a process of its user, so that the others are soon refused a new one (see
// agentLimit): the second look usually finds no new member. What forks and exits without
// end is killed by killAdopted instead. Of 300 such chains on 2 busy cores, all were
// killed in 2 to 15 seconds with freeze, and not all in 25 seconds without it.
func (r *run) freeze() {
	const looks = 4
	stopped := make(map[int]uint64) // PID to start time
	for range looks {
		alive, err := r.look()
		before := len(stopped)
		for _, m := range alive {
			if stopped[m.pid] != m.born && signalProcess(m, unix.SIGSTOP) {
				stopped[m.pid] = m.born
			}
		}
		if len(stopped) == before && !isIncomplete(err) {
			return
		}
	}
}

// proves reports whether a process is a member by what the last look showed.
func (r *run) proves(p process) bool {
	if p.born < r.from.born || r.kin == nil || runs.leads(p.pid) {
		return false
	}
	_, ok := r.kin.proves(p)
	return ok
}

// surviving counts the alive ones that were signalled.
func surviving(killed map[int]uint64, alive []process) int {
	n := 0
	for _, m := range alive {
		if born, ok := killed[m.pid]; ok && born == m.born {
			n++
		}
	}
	return n
}

// signalGroup signals the leader's group. While the leader is not reaped,
// no other group can have its number.
func (r *run) signalGroup(sig unix.Signal) {
	unix.Kill(-r.pid, sig)
}
