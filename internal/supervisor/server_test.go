package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// echo is an engine and the process behind it: it says what it is told.
type echo struct {
	sink  session.Sink
	turns chan string
	done  chan struct{}
}

func (e *echo) Open(_ context.Context, _ session.Transport, _ session.Start, sink session.Sink) (session.Info, error) {
	e.sink = sink
	go func() {
		defer close(e.done)
		for text := range e.turns {
			e.sink.Event(&agent.Event{Kind: agent.KindText, Text: text})
			e.sink.Event(&agent.Event{Kind: agent.KindResult, Text: text})
		}
		e.sink.Closed(nil)
	}()
	return session.Info{SessionID: "native"}, nil
}
func (e *echo) Send(_ context.Context, text string) error              { e.turns <- text; return nil }
func (e *echo) Steer(context.Context, string) error                    { return session.ErrUnsupported }
func (e *echo) Interrupt(context.Context) error                        { return nil }
func (e *echo) Answer(context.Context, string, session.Decision) error { return nil }
func (e *echo) Close() error                                           { close(e.turns); return nil }
func (e *echo) Stop()                                                  {}
func (e *echo) Done() <-chan struct{}                                  { return e.done }

// echoAgent is a session with echo that nobody else is told about.
type echoAgent struct{ s *session.Session }

func (a echoAgent) Session() *session.Session                     { return a.s }
func (a echoAgent) Send(m session.Message) (*session.Turn, error) { return a.s.Send(m), nil }
func (a echoAgent) Stop(ctx context.Context, reason string)       { a.s.Stop(ctx, reason) }
func (a echoAgent) Steer(ctx context.Context, m session.Message) (*session.Turn, error) {
	return a.s.Steer(ctx, m), nil
}

// openEcho is Options.Open.
func openEcho(ctx context.Context, o session.Options, notes Notes) (Agent, error) {
	notes.Started(agent.Start{Runtime: "echo"})
	e := &echo{turns: make(chan string, 1), done: make(chan struct{})}
	s, err := session.Open(ctx, "echo", e, e, session.Transport{}, session.Start{}, o)
	return echoAgent{s}, err
}

// choosyAgent takes no bad messages.
type choosyAgent struct{ Agent }

func (a choosyAgent) Send(m session.Message) (*session.Turn, error) {
	if m.Text == "bad" {
		return nil, agent.Usagef("too bad")
	}
	return a.Agent.Send(m)
}

func (a choosyAgent) Steer(context.Context, session.Message) (*session.Turn, error) {
	return nil, agent.Usagef("too bad")
}

func openChoosy(ctx context.Context, o session.Options, notes Notes) (Agent, error) {
	a, err := openEcho(ctx, o, notes)
	notes.Warn("choosy")
	return choosyAgent{a}, err
}

// newEntry makes the entry of a session called one.
func newEntry(t *testing.T) (*Sessions, Entry) {
	t.Helper()
	all := &Sessions{Folder: filepath.Join(t.TempDir(), "s")}
	entry, err := all.Create(t.Context(), Entry{Name: "one", Workdir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return all, entry
}

// serveEcho serves a session until the test ends.
func serveEcho(t *testing.T, logSize int64) (*Sessions, Entry) {
	t.Helper()
	all, entry := newEntry(t)
	return all, serve(t, Options{Sessions: all, Entry: entry, logSize: logSize, Open: openEcho})
}

// serve serves a session until the test ends, and returns its entry.
func serve(t *testing.T, o Options) Entry {
	t.Helper()
	all, entry := o.Sessions, o.Entry
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	o.Ready = func() { close(ready) }
	go func() { ended <- Serve(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(all.socket(entry.ID)); err == nil {
			t.Error("the socket is left")
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	entry, err := all.Load(entry.ID)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// A client that does not read stops nobody. When it reads again, it is told what it
// has missed, and sees what comes.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	all, entry := serveEcho(t, 256<<10)
	conn, err := net.Dial("unix", all.socket(entry.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, `{"v":1,"op":"watch","last":-1,"follow":true}`+"\n"); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 32<<10)
	for range 60 {
		_, result, err := all.Send(t.Context(), entry, text, true, Watcher{})
		if err != nil || result.Text != text {
			t.Fatalf("%v, %v", result, err)
		}
	}
	if _, _, err := all.Send(t.Context(), entry, "the last", true, Watcher{}); err != nil {
		t.Fatal(err)
	}
	var seen, missed, next int64 = 0, 0, 1
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var r Reply
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		missed, next = missed+r.Missed, next+r.Missed
		if r.Record == nil {
			continue
		}
		var record Record
		if err := json.Unmarshal(r.Record, &record); err != nil || record.Number != next {
			t.Fatalf("record %d after %d: %v", record.Number, next-1, err)
		}
		seen, next = seen+1, next+1
		if record.Ended != nil && record.Ended.Text == "the last" {
			break
		}
	}
	if missed == 0 || seen+missed != 61*4 {
		t.Errorf("%d records seen and %d missed, want %d and some of them missed", seen, missed, 61*4)
	}
	var size int64
	for _, g := range generations(all.folder(entry.ID)) {
		info, err := os.Stat(logName(all.folder(entry.ID), g))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 3*256<<10 {
		t.Errorf("the log has %d bytes", size)
	}
}

func TestCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	all, entry := serveEcho(t, 0)
	for call, want := range map[string]string{
		`{"v":2,"op":"show"}`: "version 1",
		`{"v":1,"op":"fly"}`:  "unknown operation",
		"hello":               "not understood",
	} {
		conn, err := net.Dial("unix", all.socket(entry.ID))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, call+"\n")
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.Contains(string(answer), want) || !strings.Contains(string(answer), `"kind":"usage"`) {
			t.Errorf("%s is answered by %s", call, answer)
		}
	}
	if _, err := all.Show(t.Context(), entry); err != nil {
		t.Error(err)
	}
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	t.Parallel()
	all, entry := serveEcho(t, 0)
	err := filepath.WalkDir(all.Folder, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Create(t.Context(), Entry{Name: entry.Name}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a second session of that name: %v", err)
	}
	if e, err := all.Find(entry.ID[:5]); err != nil || e.ID != entry.ID {
		t.Errorf("%v, %v", e, err)
	}
	if path := socketPath(strings.Repeat("/long", 30)); len(path) > maxSocketName {
		t.Errorf("%s is too long", path)
	}
}

// A log is gone on with, with the next number, also behind half a line.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 3 {
		l, err := openLog(folder, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		l.append(Record{Message: "m"})
		if last, _, _ := l.state(); last != int64(i+1) {
			t.Errorf("record %d has the number %d", i+1, last)
		}
		l.file.WriteString(`{"number":9`)
		l.finish()
	}
	at, last, err := lastRecords(folder, 2)
	if err != nil || last != 3 {
		t.Fatalf("%d, %v", last, err)
	}
	defer at.close()
	for want := int64(2); want <= 3; want++ {
		if _, h, missed, err := at.read(last); h.Number != want || missed != 0 || err != nil {
			t.Errorf("%d, %d missed, %v; want %d", h.Number, missed, err, want)
		}
	}
}

// The directory of a supervisor is not that of whoever asked for the session, so a
// relative workdir would be another one.
func TestServeWantsAbsoluteWorkdir(t *testing.T) {
	t.Parallel()
	for _, workdir := range []string{"", ".", "below"} {
		all, entry := newEntry(t)
		entry.Workdir = workdir
		err := Serve(t.Context(), Options{Sessions: all, Entry: entry, Open: func(context.Context, session.Options, Notes) (Agent, error) {
			t.Errorf("workdir %q: the agent is started", workdir)
			return nil, errors.New("never")
		}})
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "is not absolute") {
			t.Errorf("workdir %q: %v", workdir, err)
		}
	}
}
