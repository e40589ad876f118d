package process

import (
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// How long after the signal that ends a program what happens. An orderly stop is over
// before, unless the machine is very busy; tests that have to see one on such a
// machine change these before anything else.
var (
	KillAfter = defaultGrace + defaultSettle // what was started, by KillRuns
	ExitAfter = 7500 * time.Millisecond      // the program, in whatever state it is
)

// KillRuns kills what lives of every run of this program, the agents included,
// and looks again until nothing of them is alive or limit has passed. It is for a
// program that has to end now: the runs still end as after a stop, and are
// reported by those who wait for them.
func KillRuns(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if !runs.kill() || time.Now().After(deadline) {
			return
		}
		time.Sleep(pause)
	}
}

// kill kills the members of all runs and reports whether one was alive.
func (g *registry) kill() (alive bool) {
	g.reaping.Lock() // so that no leader's number becomes that of another process
	defer g.reaping.Unlock()
	for _, r := range g.all() {
		r.freeze()
		r.killAdopted(newHunt(time.Second, time.Second))
		found, err := r.look()
		alive = alive || len(found) > 0 || isIncomplete(err)
		for _, m := range found {
			signalProcess(m, unix.SIGKILL)
		}
		if p, err := readProcess(r.pid); err == nil && !p.dead {
			alive = true
		}
		r.signalGroup(unix.SIGKILL)
	}
	return alive
}

// all returns the runs, for a scan of each that shares nothing with its own.
func (g *registry) all() (copies []*run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.leaders {
		copies = append(copies, &run{
			pid: r.pid, from: r.from, entry: r.entry, mark: r.mark, tables: r.tables,
			known: map[int]uint64{}, owners: map[int]uint64{}, adopting: r.adopting,
		})
	}
	return copies
}
