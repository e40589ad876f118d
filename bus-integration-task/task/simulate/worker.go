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
	epoch     int
	paused    time.Duration // it takes no step until then
	cut       time.Duration // it does not reach the server until then
	since     time.Duration // start of the program
	contender *task.Contender
	job       *job
	idle      bool          // in the list of its recipient
	again     time.Duration // it looks then, without being woken
}

// job is an attempt.
type job struct {
	*record
	worker task.Worker
	state  task.State
	n      int // events of the log that were applied
	left   time.Duration
	heard  time.Duration // latest answer of the server
	commit string
}

// after runs a step of this life of the worker, later if it is paused then.
func (w *worker) after(d time.Duration, run func()) {
	epoch := w.epoch
	var step func()
	step = func() {
		switch {
		case w.epoch != epoch:
		case w.now < w.paused:
			w.simulation.after(w.paused-w.now, step)
		default:
			run()
		}
	}
	w.simulation.after(d, step)
}

func (w *worker) start() {
	w.since, w.job, w.again = w.now, nil, 0
	w.contender = task.NewContender(w.id)
	w.after(w.about(w.Latency), w.look)
}

func (w *worker) crash(d time.Duration) {
	w.trace("%s crashes for %s", w.id, d)
	if w.job != nil && w.job.record.state.Holds(w.job.worker.AttemptID) {
		w.report.Crashes++
		w.job.lostAt = w.now
	}
	w.epoch++
	w.paused = 0
	w.unlock()
	w.to.idle = slices.DeleteFunc(w.to.idle, func(other *worker) bool { return other == w })
	w.job, w.idle = nil, false
	w.after(d, w.start)
}

func (w *worker) unlock() {
	if w.to.lock == w {
		w.to.lock = nil
	}
}

// reaches reports whether a message gets through now.
func (w *worker) reaches() bool { return w.now >= w.cut && w.now >= w.down }

// look chooses a task as the worker sees them: what was appended less than a message's time
// ago is not known to it.
func (w *worker) look() {
	if w.job != nil {
		return
	}
	if !w.reaches() {
		w.after(max(w.cut, w.down)-w.now, w.look)
		return
	}
	var seen []*record
	live := w.to.queue[:0:0]
	dropped, again := 0, time.Duration(1<<62)
	for i, r := range w.to.queue {
		renewed := r.state.Status.Held() && w.now-r.renewed < w.Lease // watch offers it again
		if (!r.queued || renewed) && w.now-r.taken > 4*w.Latency || r.state.Status.Ended() {
			r.queued = false
			dropped++
			continue
		}
		live = append(live, r)
		if r.state.Status.Held() {
			if left := w.lapses(r); left > 0 {
				again = min(again, left)
				continue
			}
		}
		if seen = append(seen, r); len(seen) >= w.contender.Window() {
			live = append(live, w.to.queue[i+1:]...)
			break
		}
	}
	if dropped > 0 {
		w.to.queue = live
	}
	if len(seen) == 0 {
		if w.again <= w.now && again < 1<<62 {
			w.again = w.now + again
			w.after(again, w.look)
		}
		if !w.idle {
			w.idle = true
			w.to.idle = append(w.to.idle, w)
		}
		return
	}
	i, wait := w.contender.Next(len(seen), 4*w.Latency)
	w.after(wait, func() { w.claim(seen[i]) })
}

// lapses returns how long the worker has to wait before it may supersede the holder.
func (w *worker) lapses(r *record) time.Duration {
	s, _, quiet := w.view(r)
	return s.Decide(task.Worker{Recipient: w.to.name}, quiet).Wait
}

// view is the state as the worker has received it, and the time since the last event of the
// holder.
func (w *worker) view(r *record) (s task.State, n int, quiet time.Duration) {
	if r.log == nil {
		return r.state, 0, 0
	}
	lag := w.Latency
	if w.faulty(5) {
		lag += w.about(w.Lease) // delayed delivery
	}
	for n < len(r.log) && r.at[n] <= max(w.now-lag, r.at[0]) {
		if s.Apply(r.log[n]).Renewed {
			quiet = w.now - max(r.at[n]+w.Latency, w.since)
		}
		n++
	}
	if w.faulty(10) {
		s.Apply(r.log[w.random.IntN(n)]) // duplicate delivery
	}
	return s, n, quiet
}

func (w *worker) claim(r *record) {
	if w.job != nil {
		return
	}
	me := task.Worker{ID: w.id, Recipient: w.to.name, SafeRetries: safeRetries}
	s, n, quiet := w.view(r)
	d := s.Decide(me, quiet)
	if d.Action != task.Claim && d.Action != task.Supersede {
		w.after(4*w.Latency, w.look)
		return
	}
	w.attempts++
	me.AttemptID = fmt.Sprintf("a%d", w.attempts)
	j := &job{record: r, worker: me, state: s, n: n, left: w.about(w.Work), commit: fmt.Sprintf("%040x", w.attempts)}
	w.job = j
	w.publish(task.Event{Name: task.Claimed, Payload: task.Payload{Supersedes: d.Supersedes, LeaseSeconds: int(w.Lease / time.Second)}}, func() {
		if !j.state.Holds(me.AttemptID) {
			w.report.LostClaims++
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
func (w *worker) publish(e task.Event, then func()) {
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
	epoch := w.epoch
	w.simulation.after(w.about(w.Latency), func() {
		answered := arrive()
		if w.faulty(2) {
			w.simulation.after(w.about(w.Lease), func() { arrive() }) // duplicate
		}
		if w.epoch != epoch {
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
	j := w.job
	j.heard = w.now
	if j.log == nil {
		j.state = j.record.state
	} else {
		for ; j.n < len(j.log); j.n++ {
			j.state.Apply(j.log[j.n])
		}
	}
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
		w.publish(task.Event{Name: task.Failed}, w.next)
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
		w.publish(task.Event{Name: task.Progress}, w.next)
	})
}

func (w *worker) finish() {
	if w.job.commit[39]%5 == 0 { // no result
		w.publish(task.Event{Name: task.Blocked}, w.next)
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
		w.publish(task.Event{Name: task.Progress}, w.next)
	})
}

func (w *worker) recover(d task.Decision) {
	j := w.job
	if w.to.primary[d.Commit] && d.EndsRound && w.broken != noRecovery {
		w.publish(task.Event{Name: task.Done, Payload: task.Payload{Commit: d.Commit}}, w.next)
		return
	}
	j.worker.Checked = d.Commit
	w.unlock()
	w.next()
}

func (w *worker) announce() {
	j := w.job
	w.publish(task.Event{Name: task.Progress, Payload: task.Payload{Commit: j.commit}}, func() {
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
	w.to.primary[j.commit] = true
	w.end()
}

func (w *worker) end() {
	j := w.job
	w.publish(task.Event{Name: task.Done, Payload: task.Payload{Commit: j.commit}}, func() {
		if j.state.Holds(j.worker.AttemptID) {
			w.end()
			return
		}
		w.drop()
	})
}
