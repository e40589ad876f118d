package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// worker is a program that takes one task at a time. Everything that it learns comes
// through read and view; a crash forgets it.
type worker struct {
	*simulation
	id        string
	to        *recipient
	life      int
	paused    time.Duration // it takes no step until then
	cut       time.Duration // it does not reach the server until then
	since     time.Duration // start of the program
	contender *task.Contender
	job       *job
	place     int           // in the list of idle workers; -1 if it is not there
	again     time.Duration // it looks then
}

// job is an attempt.
type job struct {
	*record
	worker task.Worker
	state  task.State
	left   time.Duration
	heard  time.Duration // latest answer of the server
	commit string
}

// after runs a step of this life of the worker, later if it is paused then.
func (w *worker) after(d time.Duration, run func()) {
	w.push(timer{at: w.now + max(d, 1), worker: w, life: w.life, run: run})
}

func (w *worker) start() {
	w.since, w.again = w.now, 0
	w.contender = task.NewContender(w.id)
	w.after(w.about(w.Latency), w.look)
}

func (w *worker) crash(d time.Duration) {
	w.trace("%s crashes for %s", w.id, d)
	if w.job != nil && w.job.record.state.Holds(w.job.worker.AttemptID) {
		w.report.Crashes++
		w.job.lostAt = w.now
	}
	w.life++
	w.paused, w.job = 0, nil
	w.unlock()
	w.setIdle(false)
	w.after(d, w.start)
}

func (w *worker) setIdle(idle bool) {
	list := &w.to.idle
	switch {
	case idle && w.place < 0:
		w.place = len(*list)
		*list = append(*list, w)
	case !idle && w.place >= 0:
		last := (*list)[len(*list)-1]
		last.place, (*list)[w.place] = w.place, last
		*list = (*list)[:len(*list)-1]
		w.place = -1
	}
}

func (w *worker) unlock() {
	if w.to.lock == w {
		w.to.lock = nil
	}
}

// reaches reports whether a message gets through now.
func (w *worker) reaches() bool { return w.now >= w.cut && w.now >= w.down }

// roundTrip is about the time from a claim to its receipt by the other workers.
func (w *worker) roundTrip() time.Duration { return 4 * w.Latency }

// look claims a task, as the worker sees them, or waits for one: what was appended less
// than a message's time ago is not known to it.
func (w *worker) look() {
	if w.job != nil {
		return
	}
	w.setIdle(true)
	if !w.reaches() {
		w.lookAt(max(w.cut, w.down))
		return
	}
	var ready []*record
	const never = time.Duration(1 << 62)
	next := never
	for _, r := range w.to.open {
		at := w.readyAt(r)
		if at <= w.now {
			ready = append(ready, r)
		} else {
			next = min(next, at)
		}
	}
	switch {
	case len(ready) > 0:
		w.claim(ready[w.contender.Choose(len(ready))])
	case next < never:
		w.lookAt(next)
	}
}

func (w *worker) lookAt(at time.Duration) {
	if w.again <= w.now || at < w.again {
		w.again = at
		w.after(at-w.now, func() {
			if w.again == at {
				w.look()
			}
		})
	}
}

// readyAt returns when the worker may claim or supersede the task, as far as it knows.
func (w *worker) readyAt(r *record) time.Duration {
	r.late.read(r, w.now-w.Latency)
	s := &r.late.state
	heard := max(r.at[r.late.n-1]+w.Latency, w.since)
	switch {
	case s.Status.Held():
		heard = max(r.late.renewed+w.Latency, w.since) + w.Lease
	case s.Status != task.StatusOpen:
		return 1 << 62
	}
	return heard + w.contender.Wait(s.LastID, w.roundTrip())
}

// view is the state as the worker has received it, and the time since the last event of the
// holder.
func (w *worker) view(r *record) (task.State, time.Duration) {
	r.late.read(r, w.now-w.Latency)
	seen := r.late
	if w.faulty(5) { // delayed delivery
		seen = reader{}
		seen.read(r, w.now-w.Latency-w.about(w.Lease))
	}
	if w.faulty(10) { // duplicate delivery
		seen.state.Apply(*r.log[w.random.IntN(seen.n)])
	}
	return seen.state, w.now - max(seen.renewed+w.Latency, w.since)
}

func (w *worker) claim(r *record) {
	me := task.Worker{ID: w.id, Recipient: w.to.name, SafeRetries: safeRetries}
	s, quiet := w.view(r)
	d := s.Decide(me, quiet)
	if d.Action != task.Claim && d.Action != task.Supersede {
		w.lookAt(w.now + w.roundTrip())
		return
	}
	w.setIdle(false)
	w.attempts++
	me.AttemptID = fmt.Sprintf("a%d", w.attempts)
	j := &job{record: r, worker: me, state: s, left: w.about(w.Work), commit: fmt.Sprintf("%040x", w.attempts)}
	w.job = j
	w.publish(&task.Event{Name: task.Claimed, Payload: task.Payload{Supersedes: d.Supersedes, LeaseSeconds: int(w.Lease / time.Second)}}, func() {
		if !j.state.Holds(me.AttemptID) {
			w.report.LostClaims++
			if w.report.Claims < firstClaims {
				w.report.LostFirst++
			}
			w.contender.Lost()
			w.drop()
			return
		}
		w.contender.Won()
		w.next()
	})
}

func (w *worker) drop() {
	w.unlock()
	w.job = nil
	w.after(1, w.look)
}

// publish appends on condition and then, whatever the outcome, reads the log.
func (w *worker) publish(e *task.Event, then func()) {
	j := w.job
	e.AttemptID, e.WorkerID = j.worker.AttemptID, j.worker.ID
	condition := j.state.LastID
	arrive := func() bool {
		if !w.reaches() {
			return false
		}
		if j.record.state.LastID != condition && w.broken != noCondition {
			w.report.Refused++
			return true
		}
		w.append(j.record, e)
		return true
	}
	life := w.life
	w.simulation.after(w.about(w.Latency), func() {
		answered := arrive()
		if w.faulty(2) {
			w.simulation.after(w.about(w.Lease), func() { arrive() }) // duplicate
		}
		if w.life != life {
			return // crashed after it sent
		}
		wait := w.about(w.Latency)
		if !answered || w.faulty(3) { // no answer in time
			wait = w.Lease / 4
		}
		w.after(wait, func() { w.read(then) })
	})
}

func (w *worker) read(then func()) {
	if !w.reaches() {
		w.after(w.Lease/8+w.Latency, func() { w.read(then) })
		return
	}
	w.job.heard, w.job.state = w.now, w.job.record.state
	then()
}

// next is one step of a holder, decided from what it has read.
func (w *worker) next() {
	j := w.job
	switch d := j.state.Decide(j.worker, 0); d.Action {
	case task.Run:
		w.work()
	case task.Recover:
		w.locked(func() { w.recover(d) })
	case task.GiveUp:
		w.unlock()
		w.publish(&task.Event{Name: task.Failed}, w.next)
	default:
		w.drop()
	}
}

func (w *worker) work() {
	j := w.job
	if j.left <= 0 {
		w.finish()
		return
	}
	part := min(j.left, w.Lease/3)
	w.after(part, func() {
		if j.left -= part; j.left <= 0 {
			w.finish()
			return
		}
		w.publish(&task.Event{Name: task.Progress}, w.next)
	})
}

func (w *worker) finish() {
	if w.job.commit[39]%5 == 0 { // no result
		w.publish(&task.Event{Name: task.Blocked}, w.next)
		return
	}
	w.locked(w.announce)
}

// locked runs a step with the lock of the repository, and renews the lease while it waits.
func (w *worker) locked(then func()) {
	if w.to.lock == nil || w.to.lock == w || w.broken == noLock {
		w.to.lock = w
		then()
		return
	}
	w.after(w.about(w.Latency*20), func() {
		if w.to.lock == nil || w.now-w.job.heard < w.Lease/3 {
			w.locked(then)
			return
		}
		w.publish(&task.Event{Name: task.Progress}, w.next)
	})
}

func (w *worker) recover(d task.Decision) {
	j := w.job
	if slices.Contains(j.promoted, d.Commit) && d.EndsRound && w.broken != noRecovery {
		w.publish(&task.Event{Name: task.Done, Payload: task.Payload{Commit: d.Commit}}, w.next)
		return
	}
	j.worker.Checked = d.Commit
	w.unlock()
	w.next()
}

func (w *worker) announce() {
	j := w.job
	w.publish(&task.Event{Name: task.Progress, Payload: task.Payload{Commit: j.commit}}, func() {
		if d := j.state.Decide(j.worker, 0); d.Action != task.Run {
			w.next()
			return
		}
		if j.state.Attempt.Commit != j.commit {
			w.announce()
			return
		}
		w.after(w.about(w.Latency), w.promote)
		// The worst moment to be stopped, and too short for the other faults to hit.
		switch {
		case w.chance(w.StopPromoting):
			w.paused = w.now + w.about(w.Lease*2)
		case w.chance(w.StopPromoting / 2):
			w.crash(w.Lease)
		}
	})
}

func (w *worker) promote() {
	j := w.job
	s := &j.record.state
	if !s.Holds(j.worker.AttemptID) && s.Announced.Commit != j.commit {
		w.violation("%s: attempt %s promoted after it lost the task", j.ref, j.worker.AttemptID)
	}
	if len(j.promoted) > 0 && !j.reopened {
		w.violation("%s: %s promoted after %v", j.ref, j.commit, j.promoted)
	}
	w.trace("%s promotes %s", j.ref, j.commit)
	j.promoted = append(j.promoted, j.commit)
	w.end()
}

func (w *worker) end() {
	j := w.job
	w.publish(&task.Event{Name: task.Done, Payload: task.Payload{Commit: j.commit}}, func() {
		if j.state.Holds(j.worker.AttemptID) {
			w.end()
			return
		}
		w.drop()
	})
}
