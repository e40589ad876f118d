package runs

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/runner"
)

// An outputFile is the file of one output of the agent. It is read through the same
// descriptor, because the agent can replace the file of that name.
type outputFile struct {
	record *record
	file   *os.File
	masked *runner.MaskWriter
	failed bool
}

func (r *record) openOutput(name string) (*outputFile, error) {
	f, err := r.folder.Create(name)
	if err != nil {
		return nil, err
	}
	return &outputFile{record: r, file: f, masked: r.mask.Writer(f)}, nil
}

// Write writes b to the file. A failure is an error only if the record is required.
// After a failure nothing more is written, so that the file has no gaps.
func (o *outputFile) Write(b []byte) (int, error) {
	if o.failed {
		return len(b), nil
	}
	if _, err := o.masked.Write(b); err != nil {
		o.failed = true
		return len(b), o.record.note(err)
	}
	return len(b), nil
}

// flush writes the possible beginning of a secret that was held back.
func (o *outputFile) flush() error {
	if o == nil || o.failed {
		return nil
	}
	return o.masked.Flush()
}

// written returns a reader of the file.
func (o *outputFile) written() (*io.SectionReader, error) {
	if o == nil {
		return io.NewSectionReader(strings.NewReader(""), 0, 0), nil
	}
	info, err := o.file.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(o.file, 0, info.Size()), nil
}

func (o *outputFile) close() error {
	if o == nil {
		return nil
	}
	return o.file.Close()
}

// An eventFile is the file of a run's events. It buffers them for at most flushTime, so
// that readers can follow the run.
type eventFile struct {
	mu      sync.Mutex
	file    *os.File
	gather  []byte
	timer   *time.Timer
	pending bool
	err     error // of a write
	given   bool  // the recorder's caller has it
	calls   int   // of tools
	pieces  pieces
}

// The limits of the buffer.
const flushTime, flushSize = 100 * time.Millisecond, 64 << 10

func (r *record) openEvents() (*eventFile, error) {
	f, err := r.folder.Create(eventsName)
	if err != nil {
		return nil, err
	}
	e := &eventFile{file: f}
	e.timer = newStoppedTimer(e.flush)
	return e, nil
}

func newStoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// event adds one event of the agent.
func (r *record) event(e *agent.Event) error {
	return r.events.add(&Event{Time: time.Now().UTC(), Event: *e}, r)
}

// message adds a message to the agent of a session.
func (r *record) message(m agent.UserMessage) error {
	if r.unprompted.CompareAndSwap(true, false) {
		r.firstMessage(m.Text)
	}
	return r.events.add(&Event{Time: time.Now().UTC(), Event: agent.Event{Kind: KindMessage, Text: m.Text}, Attachments: m.Attachments}, r)
}

func (f *eventFile) add(e *Event, r *record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Kind == agent.KindToolCall && !e.Delta {
		f.calls++
	}
	if f.err == nil {
		f.gatherEvent(e, r.mask)
		if len(f.gather) >= flushSize {
			f.write()
		} else if !f.pending {
			f.pending = true
			f.timer.Reset(flushTime)
		}
	}
	if f.err == nil || f.given {
		return nil
	}
	f.given = true
	return r.note(f.err)
}

// gatherEvent adds the line of an event, without secrets, to the buffer.
func (f *eventFile) gatherEvent(e *Event, mask *runner.Masker) {
	if mask == nil {
		f.gather = append(e.AppendJSON(f.gather), '\n')
		return
	}
	for _, e := range f.pieces.take(e, mask) {
		begun := len(f.gather)
		f.gather = e.AppendJSON(f.gather)
		f.gather = append(append(f.gather[:begun], mask.Text(string(f.gather[begun:]))...), '\n')
	}
}

// flush writes the buffer.
func (f *eventFile) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write()
}

func (f *eventFile) write() {
	f.pending = false
	if f.err == nil && len(f.gather) > 0 {
		_, f.err = f.file.Write(f.gather)
	}
	if f.gather = f.gather[:0]; cap(f.gather) > keptSize {
		f.gather = nil
	}
}

// keptSize is the largest buffer that is kept for reuse.
const keptSize = 1 << 20

// close returns the first error of the file.
func (f *eventFile) close() error {
	if f == nil {
		return nil
	}
	f.timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	if rest := f.pieces.rest(); rest != nil && f.err == nil {
		f.gather = append(rest.AppendJSON(f.gather), '\n') // it is masked
	}
	f.write()
	return errors.Join(f.err, f.file.Close())
}

// AppendJSON appends the event as a line of events.ndjson, without its line break, to
// dst.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = e.Time.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `",`...)
	at := len(dst)
	dst = e.Event.AppendJSON(dst)
	dst = append(dst[:at], dst[at+1:]...) // without its brace
	if len(e.Attachments) == 0 {
		return dst
	}
	list, err := json.Marshal(e.Attachments)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	dst = append(dst[:len(dst)-1], `,"attachments":`...)
	return append(append(dst, jsonline.EscapeControls(list, 0)...), '}')
}
