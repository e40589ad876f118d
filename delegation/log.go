package delegation

import (
	"slices"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// A Note is one thing that an agent did in a session.
type Note struct {
	Number int        `json:"number"` // counted from 1
	Turn   int        `json:"turn,omitempty"`
	Kind   agent.Kind `json:"kind"`
	Text   string     `json:"text"`
}

const (
	maxNotes     = 1000
	maxNotesText = 1 << 20 // of all notes, in bytes
)

// A log keeps the latest notes of a session, and reports when its state changes.
type log struct {
	story story // under events, which come on one goroutine

	mu      sync.Mutex
	change  chan struct{} // closed when something changes
	last    *session.Turn
	files   []string // that changed in the turn with the number filesOf
	filesOf int
	notes   []Note
	size    int // of the texts
	count   int // of all notes
	report  func(string)
}

func newLog() *log {
	l := &log{change: make(chan struct{})}
	l.story.report = l.add
	return l
}

// event adds an event of the session.
func (l *log) event(e *agent.Event) error {
	l.mu.Lock()
	if e.Turn > l.filesOf { // the event can come before begin
		l.files, l.filesOf = nil, e.Turn
	}
	l.files = addChanges(l.files, e)
	l.mu.Unlock()
	l.story.add(e)
	if e.Kind == agent.KindResult {
		l.story.flush()
	}
	return nil
}

// add adds a note and leaves out the oldest ones if there are too many.
func (l *log) add(n note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.notes = append(l.notes, Note{Number: l.count, Turn: n.turn, Kind: n.kind, Text: n.text})
	l.size += len(n.text)
	for len(l.notes) > maxNotes || l.size > maxNotesText {
		l.size -= len(l.notes[0].Text)
		l.notes = slices.Delete(l.notes, 0, 1)
	}
	if l.report != nil {
		l.report(n.line())
	}
}

// read returns the notes from a number on, with texts of limit bytes at most, the number
// of the next one, and how many are lost.
func (l *log) read(from, limit int) (notes []Note, next, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, next = []Note{}, max(from, 1)
	for _, n := range l.notes {
		if n.Number < next {
			continue
		}
		if limit -= len(n.Text); limit < 0 && len(notes) > 0 {
			break
		}
		if len(notes) == 0 {
			lost = n.Number - next
		}
		notes, next = append(notes, n), n.Number+1
	}
	return notes, next, lost
}

// begin makes turn the last one.
func (l *log) begin(turn *session.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = turn
}

// turn returns the last turn, nil for none.
func (l *log) turn() *session.Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// changes returns the files that changed in a turn, which is the last one.
func (l *log) changes(turn *session.Turn) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn.Number() != l.filesOf {
		return nil
	}
	return slices.Clone(l.files)
}

// wait returns a channel that is closed at the next call of changed.
func (l *log) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change
}

// changed reports that the state of the session has changed.
func (l *log) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.change)
	l.change = make(chan struct{})
}

// follow passes the lines of notes to report until the returned function is called.
func (l *log) follow(report func(string)) (end func()) {
	if report == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report = report
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.report = nil
	}
}
