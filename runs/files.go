package runs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// A masker removes secrets from what is written.
type masker struct {
	environ []string // the secrets, as they are and as they stand in JSON
	some    bool
}

func newMasker(environ []string) masker {
	var m masker
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || runner.Mask([]string{entry}, value) == value {
			continue
		}
		m.environ = append(m.environ, entry, name+"="+quotedInJSON(value))
	}
	m.some = len(m.environ) > 0
	return m
}

// quotedInJSON returns text as it stands in a JSON string of ours.
func quotedInJSON(text string) string {
	const before, after = `{"kind":"","text":"`, `"}`
	line := (&agent.Event{Text: text}).AppendJSON(nil)
	return string(line[len(before) : len(line)-len(after)])
}

func (m *masker) text(text string) string { return runner.Mask(m.environ, text) }

// An outputFile is the file of one output of the agent.
type outputFile struct {
	record *record
	file   *os.File
	masked *runner.MaskWriter
	failed bool
}

func (r *record) create(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(r.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (r *record) openOutput(name string) (*outputFile, error) {
	f, err := r.create(name)
	if err != nil {
		return nil, err
	}
	return &outputFile{record: r, file: f, masked: runner.NewMaskWriter(f, r.mask.environ)}, nil
}

// Write writes b to the file. What cannot be written is no error unless the record
// is required; then nothing more is written, so that the file has no gaps.
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

// close returns the first error of the file.
func (o *outputFile) close() error {
	if o == nil || o.file == nil {
		return nil
	}
	var err error
	if !o.failed {
		err = o.masked.Flush()
	}
	return errors.Join(err, o.file.Close())
}

// An eventFile is the file of a run's events. It gathers them, for readers that
// follow the run not longer than flushTime.
type eventFile struct {
	mu      sync.Mutex
	file    *os.File
	gather  []byte
	timer   *time.Timer
	pending bool
	err     error // of a write
	calls   int   // of tools
}

// flushTime is how long an event may wait until it is written, flushSize how many
// bytes may.
const flushTime, flushSize = 100 * time.Millisecond, 64 << 10

func (r *record) openEvents() (*eventFile, error) {
	f, err := r.create(eventsName)
	if err != nil {
		return nil, err
	}
	e := &eventFile{file: f}
	e.timer = time.AfterFunc(time.Hour, e.flush)
	e.timer.Stop()
	return e, nil
}

// event adds one event of the agent.
func (r *record) event(e *agent.Event) error {
	return r.events.add(&Entry{Time: time.Now().UTC(), Event: *e}, r)
}

// message adds what the agent of a session was told.
func (r *record) message(text string) error {
	return r.events.add(&Entry{Time: time.Now().UTC(), Event: agent.Event{Kind: KindMessage, Text: text}}, r)
}

func (f *eventFile) add(e *Entry, r *record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Kind == agent.KindToolCall {
		f.calls++
	}
	if f.err != nil {
		return nil // it was told when it happened
	}
	begun := len(f.gather)
	f.gather = e.AppendJSON(f.gather)
	if r.mask.some {
		f.gather = append(f.gather[:begun], r.mask.text(string(f.gather[begun:]))...)
	}
	f.gather = append(f.gather, '\n')
	if len(f.gather) >= flushSize {
		f.write()
	} else if !f.pending {
		f.pending = true
		f.timer.Reset(flushTime)
	}
	if f.err != nil {
		return r.note(f.err)
	}
	return nil
}

// flush writes what was gathered.
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

// keptSize is the largest buffer that is kept for what comes next.
const keptSize = 1 << 20

// close returns the first error of the file.
func (f *eventFile) close() error {
	if f == nil {
		return nil
	}
	f.timer.Stop()
	f.flush()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.err, f.file.Close())
}

// AppendJSON appends the entry as a line of events.ndjson, without its line break,
// to dst.
func (e *Entry) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = e.Time.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `",`...)
	at := len(dst)
	dst = e.Event.AppendJSON(dst)
	return append(dst[:at], dst[at+1:]...) // without its brace
}

// writeAnswer writes output.md unless the agent has: the answer that was decoded,
// or, where there is none, all that the agent wrote.
func (r *record) writeAnswer(result *agent.Result) error {
	path := filepath.Join(r.dir, outputName)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if result.Text != "" {
		return writeNew(path, strings.NewReader(r.mask.text(result.Text)))
	}
	said, err := os.Open(filepath.Join(r.dir, stdoutName))
	if err != nil {
		return err
	}
	defer said.Close()
	return writeNew(path, said)
}

// writeNew writes a file that appears whole.
func writeNew(path string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
