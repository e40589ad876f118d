package process

import (
	"errors"
	"sync"
	"time"
)

// A horizon is a moment; a scan of the process table that is bound by it shows
// all processes born since, and need not show older ones.
type horizon struct {
	born uint64    // in the system's unit and clock of start times
	pid  int       // a PID given out after the moment, to a leader; a scan need not show it
	at   time.Time // by our clock
}

func (h horizon) before(other horizon) bool { return h.at.Before(other.at) }

// errUnsettled comes with a table that may lack a process, because others were
// born faster than it was read.
var errUnsettled = errors.New("processes are born too fast to list them")

// errNoFiles comes with a table that may lack a process, because this program had too many
// files open to read it.
var errNoFiles = errors.New("too many open files to list processes")

// isIncomplete reports whether the table that comes with err may lack a process.
func isIncomplete(err error) bool { return err == errUnsettled || err == errNoFiles }

// tables shares looks at the process table between runs that end together.
var tables = sharedTable{read: readTable}

type sharedTable struct {
	read    func(horizon, marks) ([]process, error)
	looking sync.Mutex // held during a scan

	mu   sync.Mutex
	next *look // one that has not begun
}

// marks are the runs that a scan is for. What bears the mark of another run of ours
// need not be shown. Nil is for all.
type marks map[uint64]bool

type look struct {
	from   horizon
	marks  marks
	joined int // how many wait for it
	done   chan struct{}
	table  []process
	err    error
}

// since returns the processes born since h that can be of the run with this mark,
// as a scan shows them that begins after this call. The caller must not change the
// table, which is valid if isIncomplete(err) too.
func (t *sharedTable) since(h horizon, mark uint64) ([]process, error) {
	t.mu.Lock()
	l := t.next
	first := l == nil
	if first {
		l = &look{from: h, marks: marks{}, done: make(chan struct{})}
		t.next = l
	} else if h.before(l.from) {
		l.from = h
	}
	l.marks[mark] = true
	l.joined++
	t.mu.Unlock()
	if !first {
		<-l.done
		return l.table, l.err
	}

	t.looking.Lock()
	defer t.looking.Unlock()
	t.mu.Lock()
	t.next = nil // later callers need a later look
	t.mu.Unlock()
	l.table, l.err = t.read(l.from, l.marks)
	close(l.done)
	return l.table, l.err
}
