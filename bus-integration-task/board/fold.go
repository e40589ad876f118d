package board

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/busdk/bus-integration-task/task"
)

// maxRef is the longest reference of a task that the board shows, in bytes.
const maxRef = 256

// maxQueues is how many recipients a page gets, those with the most work first.
const maxQueues = 200

// tasks are the tasks of a log, as far as its events have been folded, and the pages
// that watch them.
type tasks struct {
	maxEnded, maxOpen int
	revived           chan struct{} // has an item when there is something to read again

	mu        sync.Mutex
	kept      map[string]*entry
	ended     *list.List // references of ended tasks, in the order of their end
	inEnded   map[string]*list.Element
	beyond    []string // open tasks without a row, oldest first
	openRows  int
	hidden    int
	queues    map[string]*queue // by recipient
	totals    map[status]int
	forgotten int                 // ended tasks that are not kept
	reading   map[string]*revival // reopened tasks that were forgotten
	unread    int                 // of those, the ones that could not be read
	defective int                 // events that are not of a task
	latest    string              // ID of the latest event
	latestAt  int64
	problem   string // why the log is not followed, "" while it is
	watchers  map[*watcher]struct{}
}

// queue counts the tasks of a recipient.
type queue struct {
	Recipient string         `json:"recipient"`
	Tasks     map[status]int `json:"tasks"`
}

// revival is a forgotten task that an event has reopened.
type revival struct {
	reopened string // ID of that event
	latest   string // ID of the latest event of the task
}

func newTasks(maxEnded, maxOpen int) *tasks {
	return &tasks{
		maxEnded: cmp.Or(maxEnded, 1000), maxOpen: cmp.Or(maxOpen, 5000), revived: make(chan struct{}, 1),
		kept: map[string]*entry{}, ended: list.New(), inEnded: map[string]*list.Element{},
		queues: map[string]*queue{}, totals: map[status]int{}, reading: map[string]*revival{}, watchers: map[*watcher]struct{}{},
	}
}

// apply folds an event. Events that were folded before are ignored.
func (b *tasks) apply(e task.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found()
	if e.ID <= b.latest {
		return
	}
	b.latest, b.latestAt = strings.Clone(e.ID), e.Time.UnixMilli()
	if e.WorkRef == "" || len(e.WorkRef) > maxRef {
		b.defective++
		return
	}
	t := b.kept[e.WorkRef]
	if t == nil && e.Name != task.Created {
		b.applyForgotten(e)
		return
	}
	if t == nil {
		t = &entry{Ref: strings.Clone(e.WorkRef)}
	}
	status, recipient := t.Status, t.Recipient
	if t.apply(e); t.Status == "" {
		b.defective++ // it does not create a task
		return
	}
	b.kept[t.Ref] = t
	b.place(t, status, recipient)
}

// applyForgotten takes an event of a task that is not kept. Only an event that reopens
// the task matters: it is read from the log again.
func (b *tasks) applyForgotten(e task.Event) {
	if r := b.reading[e.WorkRef]; r != nil {
		r.latest = strings.Clone(e.ID)
	} else if e.Name == task.Reopened && b.forgotten > 0 {
		id := strings.Clone(e.ID)
		b.reading[strings.Clone(e.WorkRef)] = &revival{reopened: id, latest: id}
		select {
		case b.revived <- struct{}{}:
		default:
		}
	}
}

// toRead returns a reopened task that is to be read from the log, and the ID of the event
// that reopened it.
func (b *tasks) toRead() (ref, reopened string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ref, r := range b.reading {
		return ref, r.reopened, true
	}
	return "", "", false
}

// position returns the ID of the latest event.
func (b *tasks) position() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latest
}

// revive keeps a task that was read from the log. before is what it was when it was
// reopened. It reports whether the task must be read again: events were missed.
func (b *tasks) revive(ref string, t, before *entry) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reading[ref]
	if r == nil {
		return false
	}
	if t.state.LastID < r.latest {
		return true
	}
	delete(b.reading, ref)
	if b.kept[ref] != nil {
		return false
	}
	if t.Status == "" { // it was never created
		b.defective++
		return false
	}
	b.forgotten--
	b.kept[ref] = t
	b.place(t, before.Status, before.Recipient)
	return false
}

// giveUp leaves out a reopened task that cannot be read.
func (b *tasks) giveUp(ref string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reading, ref)
	b.unread++
	b.wakeAll()
}

// place puts a task where its status belongs, after it was before, and notifies the
// pages.
func (b *tasks) place(t *entry, before status, recipient string) {
	b.count(recipient, before, -1)
	b.count(t.Recipient, t.Status, 1)
	b.placeRow(t)
	element := b.inEnded[t.Ref]
	switch {
	case t.Status.ended() && element == nil:
		b.inEnded[t.Ref] = b.ended.PushBack(t.Ref)
		if b.ended.Len() > b.maxEnded {
			b.forget(b.ended.Front().Value.(string))
		}
	case !t.Status.ended() && element != nil:
		b.ended.Remove(element)
		delete(b.inEnded, t.Ref)
	}
	if t.shown {
		b.touch(t.Ref)
	}
}

// placeRow decides whether a task has a row.
func (b *tasks) placeRow(t *entry) {
	isOpen := t.Status == open || t.Status == pending
	switch {
	case isOpen && !t.shown:
		if b.openRows >= b.maxOpen {
			if !t.queued {
				t.queued = true
				b.beyond = append(b.beyond, t.Ref)
				b.hidden++
			}
			return
		}
		t.listed = true
		b.openRows++
	case isOpen && !t.listed:
		t.listed = true
		b.openRows++
	case !isOpen && t.listed:
		t.listed = false
		b.openRows--
		defer b.showNext()
	}
	b.show(t)
}

func (b *tasks) show(t *entry) {
	if t.queued {
		t.queued = false
		b.hidden--
	}
	t.shown = true
}

// showNext gives the oldest open task without a row the row that has become free.
func (b *tasks) showNext() {
	for len(b.beyond) > 0 && b.openRows < b.maxOpen {
		t := b.kept[b.beyond[0]]
		b.beyond = b.beyond[1:]
		if t == nil || !t.queued {
			continue
		}
		b.show(t)
		t.listed = true
		b.openRows++
		b.touch(t.Ref)
	}
}

func (b *tasks) forget(ref string) {
	b.ended.Remove(b.inEnded[ref])
	delete(b.inEnded, ref)
	delete(b.kept, ref)
	b.forgotten++
	b.touch(ref)
}

func (b *tasks) count(recipient string, s status, by int) {
	if s == "" {
		return
	}
	q := b.queues[recipient]
	if q == nil {
		q = &queue{Recipient: recipient, Tasks: map[status]int{}}
		b.queues[recipient] = q
	}
	if q.Tasks[s] += by; q.Tasks[s] == 0 {
		delete(q.Tasks, s)
	}
	b.totals[s] += by
}

// busiest returns the queues that the page gets, and how many others there are.
func (b *tasks) busiest() (list []*queue, others int) {
	list = slices.Collect(maps.Values(b.queues))
	slices.SortFunc(list, func(x, y *queue) int {
		return cmp.Or(cmp.Compare(y.live(), x.live()), cmp.Compare(y.Tasks[blocked], x.Tasks[blocked]), cmp.Compare(x.Recipient, y.Recipient))
	})
	n := min(len(list), maxQueues)
	list, others = list[:n], len(list)-n
	slices.SortFunc(list, func(x, y *queue) int { return cmp.Compare(x.Recipient, y.Recipient) })
	return list, others
}

func (q *queue) live() int {
	return q.Tasks[pending] + q.Tasks[open] + q.Tasks[running] + q.Tasks[waiting]
}

// lost records why the log is not followed.
func (b *tasks) lost(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problem = why
	b.wakeAll()
}

// caughtUp records that the log is followed.
func (b *tasks) caughtUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found()
}

// found is caughtUp for a caller that holds the lock.
func (b *tasks) found() {
	if b.problem != "" {
		b.problem = ""
		b.wakeAll()
	}
}

// find returns the state of a task.
func (b *tasks) find(ref string) (s task.State, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.kept[ref]
	if t == nil {
		return s, false
	}
	return t.state, true
}
