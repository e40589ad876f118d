package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// recipient has the repository of a module and the tasks for it.
type recipient struct {
	name    string
	workers []*worker
	idle    []*worker // that have no task
	open    []*record // that may be claimed or superseded, oldest first, and those claimed just now
	lock    *worker
}

// record is the log of a task. Nothing refers to it when its task has ended and all that is
// on its way has arrived.
type record struct {
	ref      string
	to       *recipient
	log      []*task.Event
	at       []time.Duration // of the events
	state    task.State      // of the whole log
	late     reader          // of the log up to one message's time ago
	checker  task.Checker
	promoted []string
	opened   time.Duration
	lostAt   time.Duration // crash of the holder
	taken    time.Duration
	renewed  time.Duration
	queued   bool
	watched  bool
	reopened bool
}

// reader is a task as it is known from the first n events of its log.
type reader struct {
	state   task.State
	n       int
	renewed time.Duration // when the holder sent its latest event
}

// read applies the events up to then. The first one is always known.
func (k *reader) read(r *record, until time.Duration) {
	for ; k.n < len(r.log) && (k.n == 0 || r.at[k.n] <= until); k.n++ {
		if k.state.Apply(*r.log[k.n]).Renewed {
			k.renewed = r.at[k.n]
		}
	}
}

// append writes to the log and notifies whom it concerns.
func (s *simulation) append(r *record, e *task.Event) {
	if e.ID != "" { // it arrives again
		again := *e
		e = &again
	}
	s.lastID++
	e.ID, e.WorkRef = fmt.Sprintf("evt_%019d", s.lastID), r.ref
	e.Time = time.Unix(0, 0).Add(s.now)
	s.report.Events++
	if e.Name == task.Progress && e.Commit == "" {
		s.report.Renewals++
	}
	if !r.checker.Add(*e) {
		s.broke(r, e.ID)
	}
	ended := r.state.Status.Ended()
	change := r.state.Apply(*e)
	if s.Trace != nil {
		s.trace("%s %s %s %s: %s %s", r.ref, e.Name, e.AttemptID, e.Commit, change.Kind, change.Reason)
	}
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

func (s *simulation) broke(r *record, id string) {
	for _, v := range r.checker.Finish() {
		if v.EventID == id && v.Kind != task.Unended {
			s.violation("%s", v)
		}
	}
}

func (s *simulation) claimed(r *record, lost string) {
	s.report.Claims++
	r.taken = s.now
	if lost == "" {
		s.report.Waited += s.now - r.opened
	} else if r.lostAt > 0 {
		s.report.Recovered = append(s.report.Recovered, s.now-r.lostAt)
	}
	r.lostAt = 0
	for _, w := range r.to.workers {
		w.contender.Saw(r.state.Attempt.WorkerID)
	}
	s.after(4*s.Latency, func() { s.withdraw(r) })
	if !r.watched {
		r.watched = true
		s.after(s.Lease, func() { s.watch(r) })
	}
}

// withdraw takes a task away that all workers have seen to be taken.
func (s *simulation) withdraw(r *record) {
	if r.queued && r.state.Status != task.StatusOpen && (s.now-r.renewed < s.Lease || r.state.Status.Ended()) {
		r.queued = false
		i := slices.Index(r.to.open, r)
		r.to.open = slices.Delete(r.to.open, i, i+1)
	}
}

// watch offers the task when the lease of its holder has run out.
func (s *simulation) watch(r *record) {
	if !r.state.Status.Held() {
		r.watched = false
		return
	}
	if left := r.renewed + s.Lease - s.now; left > 0 {
		s.withdraw(r)
		s.after(left, func() { s.watch(r) })
		return
	}
	s.offer(r)
	s.after(s.Lease, func() { s.watch(r) })
}

// offer lets all idle workers try for the task, each at its time, until they have seen a
// claim. Workers with the same time are one step.
func (s *simulation) offer(r *record) {
	if !r.queued {
		r.queued = true
		r.to.open = append(r.to.open, r)
	}
	slots := map[time.Duration][]*worker{}
	for _, w := range r.to.idle {
		wait := w.contender.Wait(r.state.LastID, w.roundTrip())
		slots[wait] = append(slots[wait], w)
	}
	offered, id := s.now, r.state.LastID
	for wait := time.Duration(0); len(slots) > 0; wait += 4 * s.Latency {
		list := slots[wait]
		delete(slots, wait)
		if len(list) == 0 {
			continue
		}
		s.after(s.Latency+wait, func() {
			if r.taken >= offered && s.now-r.taken > s.Latency && r.state.Status != task.StatusOpen || r.state.LastID != id && r.state.Status.Ended() {
				return
			}
			for _, w := range list {
				switch {
				case w.place < 0:
				case s.now < w.paused:
					w.after(1, w.look)
				default:
					w.look()
				}
			}
		})
	}
}

func (s *simulation) ended(r *record) {
	s.report.Ended++
	end := r.state.End
	switch {
	case end.Status == task.StatusDone && end.Commit != "" && !slices.Contains(r.promoted, end.Commit):
		s.violation("%s: done with %s, which was not promoted", r.ref, end.Commit)
	case end.Status == task.StatusFailed || end.Status == task.StatusBlocked:
		if len(r.promoted) > 0 && !r.reopened {
			s.violation("%s: %s, but %v was promoted", r.ref, end.Status, r.promoted)
		}
	}
	s.after(4*s.Latency, func() { s.withdraw(r) })
}
