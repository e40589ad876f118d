// Package simulate runs workers, a server, users and faults in virtual time, with the real
// state machine of package task. A seed determines everything, so a failure can be replayed.
package simulate

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// Config is one simulation. All durations are virtual.
type Config struct {
	Seed         uint64
	Workers      int
	Tasks        int
	Recipients   int           // each has its share of workers and tasks, and one repository
	Lease        time.Duration // whole seconds
	Work         time.Duration // mean time of a turn
	Arrival      time.Duration // mean time between new tasks
	Latency      time.Duration // mean time of one message
	FaultEvery   time.Duration // mean time between faults of workers; 0 means none
	RestartEvery time.Duration // mean time between restarts of the server; 0 means none
	// StopPromoting is the percentage of promotions whose worker is paused between the
	// announcement and the fast-forward; half as many crash there.
	StopPromoting float64

	Users bool      // users write, cancel and reopen
	Trace io.Writer // gets a line for each step, unless nil

	broken rule
}

// rule is a rule that workers or the server ignore, so that tests see it missed.
type rule int

const (
	noLock rule = iota + 1
	noRecovery
	noCondition
)

// Report is what happened in a simulation.
type Report struct {
	Violations []string // empty if all rules were kept; at most 20
	Ended      int
	Events     int             // in the log
	Renewals   int             // of them, Progress events without a commit
	Refused    int             // appends whose condition did not hold
	Claims     int             // that were valid
	LostClaims int             // that were refused
	LostFirst  int             // of them, those before the 1,000th valid one
	Crashes    int             // of workers that held a task
	Restarts   int             // of the server
	Recovered  []time.Duration // from a crash to the claim of another worker
	Waited     time.Duration   // sum of the times from opening to first claim
	Elapsed    time.Duration
}

const (
	safeRetries   = 2
	maxViolations = 20
	firstClaims   = 1000
)

type simulation struct {
	Config
	report     Report
	random     *rand.Rand
	now        time.Duration
	timers     timers
	seq        uint64
	lastID     uint64
	attempts   uint64
	down       time.Duration // the server is down until then
	workers    []*worker
	recipients []*recipient
}

// Run simulates until all tasks have ended, and checks the log and the repositories.
func Run(config Config) Report {
	s := &simulation{Config: config, random: rand.New(rand.NewPCG(config.Seed, 2))}
	for i := range config.Recipients {
		s.recipients = append(s.recipients, &recipient{name: fmt.Sprintf("module-%d", i)})
	}
	for i := range config.Workers {
		w := &worker{simulation: s, id: fmt.Sprintf("w%d", i), to: s.recipients[i%config.Recipients], place: -1}
		w.to.workers = append(w.to.workers, w)
		s.workers = append(s.workers, w)
		w.start()
	}
	s.create(0)
	if config.FaultEvery > 0 {
		s.after(s.about(config.FaultEvery), s.fault)
	}
	if config.RestartEvery > 0 {
		s.after(s.about(config.RestartEvery), s.restart)
	}
	limit := time.Duration(config.Tasks)*(config.Arrival+config.Work*4+config.Lease*20) + 24*time.Hour
	for s.report.Ended < config.Tasks && len(s.timers) > 0 && s.now < limit && len(s.report.Violations) < maxViolations {
		s.step()
	}
	s.report.Elapsed = s.now
	if s.report.Ended < config.Tasks {
		s.violation("stuck: %d of %d tasks ended after %s", s.report.Ended, config.Tasks, s.now)
	}
	return s.report
}

func (s *simulation) step() {
	next := s.timers.pop()
	s.now = next.at
	if w := next.worker; w != nil && w.life != next.life {
		return
	} else if w != nil && s.now < w.paused {
		next.at = w.paused
		s.push(next)
		return
	}
	next.run()
}

func (s *simulation) push(t timer) {
	s.seq++
	t.seq = s.seq
	s.timers.push(t)
}

func (s *simulation) after(d time.Duration, run func()) {
	s.push(timer{at: s.now + max(d, 1), run: run})
}

func (s *simulation) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.trace("VIOLATION %s", text)
	if len(s.report.Violations) < maxViolations {
		s.report.Violations = append(s.report.Violations, text)
	}
}

func (s *simulation) trace(format string, args ...any) {
	if s.Trace != nil {
		fmt.Fprintf(s.Trace, "%12s %s\n", s.now.Round(time.Millisecond), fmt.Sprintf(format, args...))
	}
}

// about returns a random duration whose mean is d.
func (s *simulation) about(d time.Duration) time.Duration {
	return time.Duration(s.random.ExpFloat64() * float64(d))
}

func (s *simulation) chance(percent float64) bool { return s.random.Float64()*100 < percent }

// faulty is chance while there are faults.
func (s *simulation) faulty(percent float64) bool { return s.FaultEvery > 0 && s.chance(percent) }

func (s *simulation) create(n int) {
	r := &record{ref: fmt.Sprintf("sim#%d", n), to: s.recipients[n%s.Recipients]}
	s.append(r, &task.Event{Name: task.Created, Payload: task.Payload{Recipient: r.to.name}})
	if s.Users {
		s.after(s.about(s.Work), func() { s.user(r) })
	}
	if n+1 < s.Tasks {
		s.after(s.about(s.Arrival), func() { s.create(n + 1) })
	}
}

// user appends without a condition.
func (s *simulation) user(r *record) {
	switch {
	case r.state.Status.Ended():
		return
	case s.chance(60):
		s.append(r, &task.Event{Name: task.Message, Payload: task.Payload{Text: "more"}})
		s.after(s.about(s.Work), func() { s.user(r) })
	case s.chance(50):
		s.append(r, &task.Event{Name: task.Canceled})
		if s.chance(50) && !r.reopened {
			r.reopened = true
			s.after(s.about(s.Lease), func() { s.append(r, &task.Event{Name: task.Reopened}) })
		}
	}
}

// fault disturbs a worker.
func (s *simulation) fault() {
	w := s.workers[s.random.IntN(len(s.workers))]
	d := s.about(s.Lease * 3 / 2)
	switch s.random.IntN(7) {
	case 0, 1, 2:
		w.crash(d)
	case 3, 4:
		s.trace("%s is paused for %s", w.id, d)
		w.paused = s.now + d
	default:
		s.trace("%s is cut off for %s", w.id, d)
		w.cut = s.now + d
	}
	s.after(s.about(s.FaultEvery), s.fault)
}

func (s *simulation) restart() {
	d := s.about(s.Lease * 3 / 8)
	s.trace("the server is down for %s", d)
	s.report.Restarts++
	s.down = s.now + d
	s.after(s.about(s.RestartEvery), s.restart)
}
