package board

import (
	"encoding/json"
	"maps"
	"time"
)

// maxRows is how many tasks an update holds.
const maxRows = 100

// watcher is a connected page: the references of tasks whose latest state it has not
// got. So a slow page costs references, never texts.
type watcher struct {
	dirty map[string]struct{}
	reset bool          // the page is to forget what it has
	wake  chan struct{} // has an item when there is something to send
}

// update is what a page gets: the latest state of tasks that have changed.
type update struct {
	Now       int64          `json:"now"` // of the server
	Reset     bool           `json:"reset,omitempty"`
	More      bool           `json:"more,omitempty"` // other updates follow at once
	Tasks     []*entry       `json:"tasks"`
	Gone      []string       `json:"gone,omitempty"`
	Queues    []*queue       `json:"queues"`
	Others    int            `json:"others,omitempty"` // queues that are not listed
	Totals    map[status]int `json:"totals"`
	Hidden    int            `json:"hidden,omitempty"`    // open tasks without a row
	Forgotten int            `json:"forgotten,omitempty"` // ended tasks that are not kept
	Unread    int            `json:"unread,omitempty"`
	Defective int            `json:"defective,omitempty"`
	Latest    string         `json:"latest,omitempty"`
	LatestAt  int64          `json:"latest_at,omitempty"`
	Problem   string         `json:"problem,omitempty"`
}

// watch connects a page, or returns nil if there are too many.
func (b *tasks) watch() *watcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.watchers) >= maxStreams {
		return nil
	}
	w := &watcher{wake: make(chan struct{}, 1)}
	b.watchers[w] = struct{}{}
	b.restart(w)
	return w
}

func (b *tasks) unwatch(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, w)
}

// restart makes a page get everything.
func (b *tasks) restart(w *watcher) {
	w.reset, w.dirty = true, make(map[string]struct{}, len(b.kept))
	for ref, t := range b.kept {
		if t.shown {
			w.dirty[ref] = struct{}{}
		}
	}
	w.signal()
}

// touch marks a task as changed for every page. A page that has missed more changes
// than there are tasks starts anew.
func (b *tasks) touch(ref string) {
	for w := range b.watchers {
		w.dirty[ref] = struct{}{}
		if len(w.dirty) > len(b.kept)+1000 {
			b.restart(w)
		}
		w.signal()
	}
}

func (b *tasks) wakeAll() {
	for w := range b.watchers {
		w.signal()
	}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next returns an update for a page as JSON, and whether another one is ready.
func (b *tasks) next(w *watcher) (text []byte, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := update{
		Now: time.Now().UnixMilli(), Reset: w.reset, Totals: b.totals, Hidden: b.hidden, Forgotten: b.forgotten,
		Unread: b.unread, Defective: b.defective, Latest: b.latest, LatestAt: b.latestAt, Problem: b.problem,
	}
	w.reset = false
	for ref := range maps.Keys(w.dirty) {
		if len(u.Tasks)+len(u.Gone) == maxRows {
			break
		}
		delete(w.dirty, ref)
		if t := b.kept[ref]; t != nil && t.shown {
			u.Tasks = append(u.Tasks, t)
		} else {
			u.Gone = append(u.Gone, ref)
		}
	}
	u.More = len(w.dirty) > 0
	u.Queues, u.Others = b.busiest()
	text, err = json.Marshal(u) // under the lock: the entries change in place
	return text, u.More, err
}
