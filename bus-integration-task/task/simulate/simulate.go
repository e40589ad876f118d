// Package simulate runs workers, a server, users and faults in virtual time, with the real
// state machine of package task. A seed determines everything, so a failure can be replayed.
package simulate

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// Config is one simulation. All durations are virtual.
type Config struct {
	Seed       uint64
	Workers    int
	Tasks      int
	Recipients int           // each has its share of workers and tasks, and one repository
	Lease      time.Duration // whole seconds
	Work       time.Duration // mean time of a turn
	Arrival    time.Duration // mean time between new tasks
	Latency    time.Duration // mean time of one message
	FaultEvery time.Duration // mean time between faults; 0 means none
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
	Refused    int             // appends whose condition did not hold
	Claims     int             // that were valid
	LostClaims int             // that were refused
	Crashes    int             // of workers that held a task
	Recovered  []time.Duration // from a crash to the claim of another worker
	Waited     time.Duration   // sum of the times from opening to first claim
	Elapsed    time.Duration
}

const (
	safeRetries   = 2
	maxViolations = 20
)

type timer struct {
	at  time.Duration
	seq uint64
	run func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return last
}

type simulation struct {
	Config
	report     Report
	random     *rand.Rand
	now        time.Duration
	timers     timers
	seq        uint64
	lastID     uint64
	attempts   uint64
	checker    task.Checker
	down       time.Duration // the server is down until then
	workers    []*worker
	recipients []*recipient
}

// recipient has the repository of a module and the tasks for it.
type recipient struct {
	name    string
	queue   []*record // open or lapsed, oldest first; others are dropped when seen
	idle    []*worker
	lock    *worker
	primary map[string]bool
}

// record is the log of a task.
type record struct {
	ref      string
	to       *recipient
	log      []task.Event
	at       []time.Duration // of the events
	state    task.State      // of the whole log
	promoted []string
	opened   time.Duration
	lostAt   time.Duration // crash of the holder
	taken    time.Duration
	renewed  time.Duration
	queued   bool
	watched  bool
	reopened bool
}

// Run simulates until all tasks have ended, and checks the log and the repositories.
func Run(config Config) Report {
	s := &simulation{Config: config, random: rand.New(rand.NewPCG(config.Seed, 2))}
	for i := range config.Recipients {
		s.recipients = append(s.recipients, &recipient{name: fmt.Sprintf("module-%d", i), primary: map[string]bool{}})
	}
	for i := range config.Workers {
		w := &worker{simulation: s, id: fmt.Sprintf("w%d", i), to: s.recipients[i%config.Recipients]}
		w.start()
		s.workers = append(s.workers, w)
	}
	s.create(0)
	if config.FaultEvery > 0 {
		s.after(s.about(config.FaultEvery), s.fault)
	}
	limit := time.Duration(config.Tasks)*(config.Arrival+config.Work*4+config.Lease*20) + 24*time.Hour
	for s.report.Ended < config.Tasks && len(s.timers) > 0 && s.now < limit && len(s.report.Violations) < maxViolations {
		next := heap.Pop(&s.timers).(timer)
		s.now = next.at
		next.run()
	}
	s.report.Elapsed = s.now
	if s.report.Ended < config.Tasks {
		s.violation("stuck: %d of %d tasks ended after %s", s.report.Ended, config.Tasks, s.now)
	}
	for _, v := range s.checker.Finish() {
		s.violation("%s", v)
	}
	return s.report
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

func (s *simulation) after(d time.Duration, run func()) {
	s.seq++
	heap.Push(&s.timers, timer{s.now + max(d, 1), s.seq, run})
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
	s.append(r, task.Event{Name: task.Created, Payload: task.Payload{Recipient: r.to.name}})
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
		s.append(r, task.Event{Name: task.Message, Payload: task.Payload{Text: "more"}})
		s.after(s.about(s.Work), func() { s.user(r) })
	case s.chance(50):
		if again := s.chance(50) && !r.reopened; again {
			r.reopened = true
			s.append(r, task.Event{Name: task.Canceled})
			s.after(s.about(s.Lease), func() { s.append(r, task.Event{Name: task.Reopened}) })
		} else {
			s.append(r, task.Event{Name: task.Canceled})
		}
	}
}

// append writes to the log and lets everybody know.
func (s *simulation) append(r *record, e task.Event) {
	s.lastID++
	e.ID, e.WorkRef = fmt.Sprintf("evt_%019d", s.lastID), r.ref
	e.Time = time.Unix(0, 0).Add(s.now)
	s.report.Events++
	s.checker.Add(e)
	ended := r.state.Status.Ended()
	change := r.state.Apply(e)
	s.trace("%s %s %s %s: %s %s", r.ref, e.Name, e.AttemptID, e.Commit, change.Kind, change.Reason)
	r.log, r.at = append(r.log, e), append(r.at, s.now)
	if change.Renewed {
		r.renewed = s.now
	}
	switch change.Kind {
	case task.ChangeOpened, task.ChangeReleased:
		if ended {
			s.report.Ended--
		}
		r.opened = s.now
		s.offer(r)
	case task.ChangeClaimed:
		s.claimed(r, change.Lost)
	case task.ChangeEnded:
		s.ended(r)
	}
}

func (s *simulation) claimed(r *record, lost string) {
	s.report.Claims++
	r.taken, r.queued = s.now, false
	if lost == "" {
		s.report.Waited += s.now - r.opened
	} else if r.lostAt > 0 {
		s.report.Recovered = append(s.report.Recovered, s.now-r.lostAt)
	}
	r.lostAt = 0
	if !r.watched {
		r.watched = true
		s.after(s.Lease, func() { s.watch(r) })
	}
}

// watch offers the task when the lease of its holder has run out.
func (s *simulation) watch(r *record) {
	if !r.state.Status.Held() {
		r.watched = false
		return
	}
	if left := r.renewed + s.Lease + s.Latency - s.now; left > 0 {
		s.after(left, func() { s.watch(r) })
		return
	}
	s.offer(r)
	s.after(s.Lease, func() { s.watch(r) })
}

func (s *simulation) offer(r *record) {
	if !r.queued {
		r.queued = true
		r.to.queue = append(r.to.queue, r)
	}
	for _, w := range r.to.idle {
		w.idle = false
		w.after(2*s.Latency, w.look)
	}
	r.to.idle = r.to.idle[:0]
}

func (s *simulation) ended(r *record) {
	s.report.Ended++
	end := r.state.End
	switch {
	case end.Status == task.StatusDone && end.Commit != "" && !r.to.primary[end.Commit]:
		s.violation("%s: done with %s, which was not promoted", r.ref, end.Commit)
	case end.Status == task.StatusFailed || end.Status == task.StatusBlocked:
		if len(r.promoted) > 0 && !r.reopened {
			s.violation("%s: %s, but %v was promoted", r.ref, end.Status, r.promoted)
		}
	}
	if !r.reopened && !s.Users {
		r.log, r.at = nil, nil // readers use the state from now on
	}
}

// fault disturbs a worker or the server.
func (s *simulation) fault() {
	w := s.workers[s.random.IntN(len(s.workers))]
	d := s.about(s.Lease * 3 / 2)
	switch s.random.IntN(8) {
	case 0, 1, 2:
		w.crash(d)
	case 3, 4:
		s.trace("%s is paused for %s", w.id, d)
		w.paused = s.now + d
	case 5, 6:
		s.trace("%s is cut off for %s", w.id, d)
		w.cut = s.now + d
	default:
		s.trace("the server is down for %s", d/4)
		s.down = s.now + d/4
	}
	s.after(s.about(s.FaultEvery), s.fault)
}
