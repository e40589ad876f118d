package task

import (
	"fmt"
	"slices"
	"strings"
)

// The model explores every interleaving of two workers, a server, a user, an adversary and
// faults at small scope, with the real State and Decide. A worker that takes no step is
// paused, so a pause (SIGSTOP) between any two steps is part of every exploration. A request
// may arrive late, twice or never, also after its worker has crashed. A lease may have run
// out at any time.

type entry struct{ name, attempt, over, commit, adversary uint8 }

const (
	none = iota
	mCreated
	mClaimed
	mAnnounced
	mReleased
	mDone
	mFailed
	mSaid
	mCanceled
	mReopened
)

var modelNames = [...]string{"", Created, Claimed, Progress, Released, Done, Failed, Message, Canceled, Reopened}

func (e entry) String() string {
	text := modelNames[e.name]
	for label, value := range map[string]uint8{"attempt": e.attempt, "over": e.over, "commit": e.commit} {
		if value != 0 {
			text += fmt.Sprintf(" %s=%s", label, attemptName(value))
		}
	}
	return text
}

func attemptName(n uint8) string {
	if n == 0 {
		return ""
	}
	return string('A' + rune(n-1))
}

func modelCommit(n uint8) string {
	if n == 0 {
		return ""
	}
	return strings.Repeat(fmt.Sprint(n), 40)
}

type entries struct {
	list [14]entry
	n    uint8
}

type step uint8

const (
	idle    step = iota
	publish      // next is to be sent
	waiting      // next was sent
	locking
	locked
	promoting
)

type process struct {
	step    step
	attempt uint8
	seen    uint8 // events of the log that it has read
	checked uint8
	next    entry
}

type request struct {
	condition uint8 // length of the log that it expects
	worker    uint8
	event     entry
}

// budget limits how often something happens.
type budget struct{ attempts, duplicates, late, lost, crashes, cancels, says, reopens, releases, stale uint8 }

type world struct {
	log     entries
	workers [2]process
	net     [3]request
	owner   uint8 // 1 + worker that has the lock
	repo    [4]uint8
	left    budget
}

// rules are what a mutant breaks.
type rules struct {
	unconditional, unconditionalEnds, noLock, noRecover, noAnnouncement, noSupersede bool
	mutate                                                                           func(*State, *Event)
}

type model struct {
	rules
	states  map[entries]*State
	seen    map[world]int32
	list    []world
	parents [][]int32
	problem string
	at      world
}

// state applies the first n events, each twice, as duplicate delivery does.
func (m *model) state(w *world, n uint8) *State {
	key := w.log
	key.n = n
	clear(key.list[n:])
	if s := m.states[key]; s != nil {
		return s
	}
	s := new(State)
	if n > 0 {
		*s = *m.state(w, n-1)
		e := modelEvent(key.list[n-1], int(n))
		if m.mutate != nil {
			m.mutate(s, &e)
		}
		s.Apply(e)
		if got := s.Apply(e); got.Kind != ChangeDuplicate {
			m.fail(w, "duplicate delivery counts")
		}
	}
	m.states[key] = s
	return s
}

func modelEvent(from entry, n int) Event {
	e := Event{ID: eventID(n), Name: modelNames[from.name]}
	e.WorkRef, e.Recipient = "busdk#1.1", "bus-dev"
	e.AttemptID, e.Supersedes, e.Commit = attemptName(from.attempt), attemptName(from.over), modelCommit(from.commit)
	if e.AttemptID != "" {
		e.WorkerID = "w"
	}
	return e
}

func (m *model) fail(w *world, problem string) {
	if m.problem == "" {
		m.problem, m.at = problem, *w
	}
}

func (w *world) append(e entry) {
	w.log.list[w.log.n] = e
	w.log.n++
}

func (w *world) unlock(i int) {
	if w.owner == uint8(i+1) {
		w.owner = 0
	}
}

func attemptNumber(name string) uint8 {
	if name == "" {
		return 0
	}
	return name[0] - 'A' + 1
}

// explore visits every world that can be reached, until a rule is broken.
func (m *model) explore(left budget) {
	m.states, m.seen = map[entries]*State{}, map[world]int32{}
	first := world{left: left}
	first.append(entry{name: mCreated})
	m.visit(first, -1)
	for i := 0; i < len(m.list) && m.problem == ""; i++ {
		m.successors(m.list[i], func(next world) { m.visit(next, int32(i)) })
	}
	if m.problem == "" {
		m.findStuck()
	}
}

func (m *model) visit(w world, parent int32) {
	i, known := m.seen[w]
	if !known {
		i = int32(len(m.list))
		m.seen[w] = i
		m.list, m.parents = append(m.list, w), append(m.parents, nil)
		m.check(&w)
	}
	if parent >= 0 {
		m.parents[i] = append(m.parents[i], parent)
	}
}

func (m *model) successors(w world, visit func(world)) {
	for i := range w.workers {
		m.work(w, i, visit)
		if w.left.crashes > 0 && w.workers[i].step != idle {
			next := w
			next.left.crashes--
			next.workers[i] = process{}
			next.unlock(i)
			visit(next)
		}
	}
	for i, r := range w.net {
		if r.event.name == none {
			continue
		}
		arrived := w
		if m.unconditional || m.unconditionalEnds && r.event.name == mDone || r.condition == w.log.n {
			arrived.append(r.event)
		}
		if w.left.duplicates > 0 {
			twice := arrived
			twice.left.duplicates--
			visit(twice)
		}
		arrived.net[i] = request{}
		visit(arrived)
		if w.left.lost > 0 {
			lost := w
			lost.left.lost--
			lost.net[i] = request{}
			visit(lost)
		}
	}
	m.outsiders(w, visit)
}

// outsiders append without a condition.
func (m *model) outsiders(w world, visit func(world)) {
	s := m.state(&w, w.log.n)
	for _, o := range []struct {
		left  *uint8
		name  uint8
		sense bool
	}{
		{&w.left.cancels, mCanceled, !s.Status.Ended()},
		{&w.left.says, mSaid, true},
		{&w.left.reopens, mReopened, s.Status.Ended()},
	} {
		if *o.left > 0 && o.sense {
			*o.left--
			next := w
			next.append(entry{name: o.name})
			visit(next)
			*o.left++
		}
	}
	if w.left.stale == 0 {
		return
	}
	// Attempts that do not hold the task: one that did, perhaps, and one that never did.
	w.left.stale--
	for _, attempt := range []uint8{1, 2, 9} {
		if s.Holds(attemptName(attempt)) {
			continue
		}
		for _, name := range []uint8{mClaimed, mAnnounced, mReleased, mDone, mFailed, mCanceled} {
			e := entry{name: name, attempt: attempt, adversary: 1}
			if name == mClaimed {
				e.over = 8 // never the holder
			}
			next := w
			next.append(e)
			visit(next)
		}
	}
}

// work is the program of a worker, one step of it.
func (m *model) work(w world, i int, visit func(world)) {
	p := &w.workers[i]
	switch p.step {
	case idle:
		m.look(w, i, visit)
	case publish:
		free := slices.IndexFunc(w.net[:], func(r request) bool { return r.event.name == none })
		if free < 0 {
			return
		}
		w.net[free] = request{condition: p.seen, worker: uint8(i), event: p.next}
		p.step = waiting
		visit(w)
	case waiting:
		inFlight := slices.ContainsFunc(w.net[:], func(r request) bool {
			return r.event.name != none && r.worker == uint8(i) && r.event == p.next && r.condition == p.seen
		})
		if inFlight {
			if w.left.late == 0 {
				return
			}
			w.left.late-- // no answer in time: the request may still arrive
		}
		p.seen = w.log.n
		m.resume(w, i, visit)
	case locking:
		if w.owner == 0 || m.noLock {
			w.owner = uint8(i + 1)
			p.step = locked
			visit(w)
		}
	case locked:
		m.inLock(w, i, visit)
	case promoting:
		if s := m.state(&w, w.log.n); !s.Holds(attemptName(p.attempt)) && s.Announced.Commit != modelCommit(p.attempt) {
			m.fail(&w, "promoted after loss")
		}
		w.repo[slices.Index(w.repo[:], 0)] = p.attempt
		p.step, p.next = publish, entry{name: mDone, attempt: p.attempt, commit: p.attempt}
		visit(w)
	}
}

// look reads the log and decides whether to claim, with the lease run out or not.
func (m *model) look(w world, i int, visit func(world)) {
	if w.left.attempts == 0 {
		return
	}
	p := &w.workers[i]
	s := m.state(&w, w.log.n)
	d := s.Decide(Worker{Recipient: "bus-dev"}, MaxLease)
	if d.Action == Supersede && m.noSupersede || d.Action != Claim && d.Action != Supersede {
		return
	}
	used := uint8(0)
	for _, e := range w.log.list[:w.log.n] {
		if e.adversary == 0 {
			used = max(used, e.attempt)
		}
	}
	for _, r := range w.net {
		used = max(used, r.event.attempt)
	}
	for _, other := range w.workers {
		used = max(used, other.attempt)
	}
	w.left.attempts--
	*p = process{step: publish, attempt: used + 1, seen: w.log.n}
	p.next = entry{name: mClaimed, attempt: p.attempt, over: attemptNumber(d.Supersedes)}
	visit(w)
}

func (m *model) decide(w *world, p *process) Decision {
	d := m.state(w, p.seen).Decide(Worker{Recipient: "bus-dev", AttemptID: attemptName(p.attempt), Checked: modelCommit(p.checked), SafeRetries: 1}, 0)
	if d.Action == Recover && m.noRecover {
		d.Action = Run
	}
	return d
}

// resume is what follows an outcome: the worker has read the log and decides again.
func (m *model) resume(w world, i int, visit func(world)) {
	p := &w.workers[i]
	d := m.decide(&w, p)
	has := w.owner == uint8(i+1)
	switch d.Action {
	case Nothing:
		w.unlock(i)
		*p = process{}
	case Recover:
		p.step = map[bool]step{true: locked, false: locking}[has]
	case GiveUp:
		w.unlock(i)
		p.step, p.next = publish, entry{name: mFailed, attempt: p.attempt}
	default:
		switch {
		case p.next.name == mClaimed:
			p.step = locking
			if w.left.releases > 0 {
				released := w
				released.left.releases--
				released.workers[i].step, released.workers[i].next = publish, entry{name: mReleased, attempt: p.attempt}
				visit(released)
			}
		case p.next.name == mAnnounced && m.state(&w, p.seen).Attempt.Commit == modelCommit(p.attempt):
			p.step = promoting
		default:
			p.step = publish // not appended: try again with the new condition
		}
	}
	visit(w)
}

func (m *model) inLock(w world, i int, visit func(world)) {
	p := &w.workers[i]
	d := m.decide(&w, p)
	switch d.Action {
	case Recover:
		commit := d.Commit[0] - '0'
		if slices.Contains(w.repo[:], commit) && d.EndsRound {
			p.step, p.next = publish, entry{name: mDone, attempt: p.attempt, commit: commit}
		} else {
			p.checked = commit
		}
	case GiveUp:
		w.unlock(i)
		p.step, p.next = publish, entry{name: mFailed, attempt: p.attempt}
	default:
		p.step, p.next = publish, entry{name: mAnnounced, attempt: p.attempt, commit: p.attempt}
		if m.noAnnouncement {
			p.step = promoting
		}
	}
	visit(w)
}
