package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// serve starts a session called one that is served, with a client of it.
func serve(t *testing.T, change ...func(*bench)) (*bench, control.SessionHandle, *control.Client, control.Entry) {
	t.Helper()
	b := newBench(t)
	b.Serve = true
	for _, f := range change {
		f(b)
	}
	h := b.start(control.StartOptions{Name: "one"})
	c := &control.Client{Store: b.Store}
	e, err := b.Store.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(b.Store.Socket(e)); err == nil {
			t.Error("the socket is left")
		}
	})
	return b, h, c, e
}

// ask sends a call and returns all that is answered.
func ask(conn net.Conn, call string) ([]byte, error) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, call+"\n"); err != nil {
		return nil, err
	}
	return io.ReadAll(conn)
}

func show() string { return fmt.Sprintf(`{"v":%d,"op":"show"}`, control.ProtocolVersion) }

// TestShowBeforeTheEntryIsSaved shows what the runtime has reported while another
// process keeps the entry from being saved.
func TestShowBeforeTheEntryIsSaved(t *testing.T) {
	t.Parallel()
	b, h, c, e := serve(t)
	lock, err := statefile.LockPath(t.Context(), filepath.Join(b.Store.Dir(), ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	file := filepath.Join(t.TempDir(), "now")
	turn, err := b.Send(h, control.Message{Text: "rename " + file})
	if err != nil {
		t.Fatal(err)
	}
	b.makeFile(file)
	if _, err := turn.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if st, err := c.Show(t.Context(), e); st.NativeID != "native-renamed" || err != nil {
		t.Errorf("native ID %q, %v", st.NativeID, err)
	}
}

// TestClient talks with a session of another process, as far as a socket can tell.
func TestClient(t *testing.T) {
	t.Parallel()
	b, h, c, e := serve(t)
	ctx := t.Context()
	result, err := c.Ask(ctx, e, control.Message{Text: "hello"}, control.Watcher{})
	if err != nil || result.Text != "hello" || result.Runtime != "talker" {
		t.Errorf("%+v, %v", result, err)
	}
	if turn, err := c.Send(ctx, e, control.Message{Text: "ask"}); turn != 2 || err != nil {
		t.Errorf("turn %d, %v", turn, err)
	}
	if err := c.Watch(ctx, e, control.WatchOptions{Until: session.StateWaiting}, control.Watcher{}); err != nil {
		t.Error(err)
	}
	st, err := c.Show(ctx, e)
	if err != nil || st.State != session.StateWaiting || st.Turns != 2 || st.Waiting != 0 || !st.Running || len(st.Approvals) != 1 || st.Approvals[0].ID != "1" {
		t.Errorf("%+v, %v", st, err)
	}
	if err := c.Answer(ctx, e, "", session.Accept); err != nil {
		t.Error(err)
	}
	if err := c.Watch(ctx, e, control.WatchOptions{Until: session.StateReady}, control.Watcher{}); err != nil {
		t.Error(err)
	}
	if err := c.Answer(ctx, e, "", session.Accept); !errors.Is(err, session.ErrTooLate) || !strings.Contains(err.Error(), "no approval request is open") {
		t.Error(err)
	}
	if interrupted, err := c.Interrupt(ctx, e, time.Minute); interrupted || err != nil {
		t.Errorf("nothing is interrupted: %t, %v", interrupted, err)
	}
	if turn, steered, err := c.Steer(ctx, e, control.Message{Text: "third"}); turn != 3 || steered || err != nil {
		t.Errorf("turn %d, %t, %v", turn, steered, err)
	}
	// Another manager reaches it as well.
	other := newBench(t)
	other.Store = b.Store
	if err := other.SendMessage(ctx, h, control.Message{Text: "fourth"}); err != nil {
		t.Error(err)
	}
	other.untilReady(h)
	if running, err := other.DetectRunning(ctx, h); !running || err != nil {
		t.Error(running, err)
	}
	if err := other.Stop(ctx, h, "that is all"); err != nil {
		t.Error(err)
	}
	now, err := b.Store.Find("one")
	if err != nil || now.State != session.StateStopped || now.Reason != "that is all" || now.Turns != 4 {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := c.Send(ctx, now, control.Message{Text: "x"}); !errors.Is(err, control.ErrNotRunning) || !strings.Contains(err.Error(), "that is all") {
		t.Error(err)
	}
	// What happened is read from its folder, with the turn of each record.
	var seen []string
	if err := c.Watch(ctx, now, control.WatchOptions{Last: -1, Follow: true}, control.Watcher{Record: func(r *control.LogRecord) error {
		text := fmt.Sprint(r.Turn, " ", r.Message, r.Stopped)
		if r.Event != nil {
			text += string(r.Event.Kind)
			if r.Event.Turn != r.Turn {
				t.Errorf("an event of turn %d in a record of turn %d", r.Event.Turn, r.Turn)
			}
		}
		if r.Ended != nil {
			text += "ended"
		}
		if r.Answered != nil {
			text += string(r.Answered.Decision)
		}
		seen = append(seen, text)
		return nil
	}}); err != nil {
		t.Error(err)
	}
	want := []string{"1 hello", "1 text", "1 result", "1 ended", "2 ask", "2 approval", "2 accept", "2 text", "2 result", "2 ended", "3 third", "3 text", "3 result", "3 ended", "4 fourth", "4 text", "4 result", "4 ended", "0 that is all"}
	slices.Sort(seen) // what is written by different goroutines
	slices.Sort(want)
	if !slices.Equal(seen, want) {
		t.Errorf("seen\n%q\nwant\n%q", seen, want)
	}
}

// A session that is not served says so.
func TestClientOfASessionThatIsNotServed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{})
	e, err := b.Store.Get(h.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	c := &control.Client{Store: b.Store}
	if _, err := c.Send(t.Context(), e, control.Message{Text: "x"}); !errors.Is(err, control.ErrElsewhere) {
		t.Error(err)
	}
	if st, err := c.Show(t.Context(), e); err != nil || st.State != session.StateReady || !st.Running {
		t.Errorf("%+v, %v", st, err)
	}
}

// A session without a message ends after its time.
func TestIdle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{Settings: control.Settings{Idle: 20 * time.Millisecond}, InitialPrompt: "hello"})
	if e := b.until(h, session.StateStopped); e.Reason != "idle for 20ms" {
		t.Errorf("%+v", e)
	}
}

// The settings of a session are those with which it is resumed, but what opts sets
// is different; its environment is not kept.
func TestSettingsAreKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hook := filepath.Join(t.TempDir(), "hooked")
	settings := control.Settings{
		Runtime: "talker:local", Workdir: b.workdir, Mode: session.ModeMinimal, Model: "m", Access: agent.AccessRead,
		StartTimeout: time.Minute, Idle: time.Hour, TurnTimeout: 2 * time.Minute, ApprovalTimeout: 3 * time.Minute,
		Bead: "gp-1", Hooks: []control.SinkSpec{{File: hook}}, TrustWorkspace: true,
	}
	h := b.start(control.StartOptions{Settings: settings, Env: map[string]string{"SECRET_KEY": "very secret"}})
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.until(h, session.StateStopped).Settings; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", settings) {
		t.Errorf("kept are %+v", got)
	}
	if _, err := b.ResumeWith(t.Context(), h, control.ResumeOptions{Settings: control.Settings{Idle: time.Minute}}, session.Options{}); err != nil {
		t.Fatal(err)
	}
	settings.Idle, settings.TrustWorkspace = time.Minute, false // which is not given again
	if got := b.until(h, session.StateReady).Settings; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", settings) {
		t.Errorf("after resume kept are %+v", got)
	}
	if got := b.ask(h, "env SECRET_KEY"); got != "SECRET_KEY=" {
		t.Error(got)
	}
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(hook); err != nil || bytes.Count(text, []byte("\n")) != 5 {
		t.Errorf("%s, %v", text, err)
	}
	files := 0
	if err := filepath.WalkDir(b.Store.Dir(), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("very secret")) {
			t.Errorf("%s has a value of the environment", path)
		}
		return err
	}); err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// A client that does not read stops nothing. When it reads again, it learns what it
// has missed, and sees what comes.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	b, _, c, e := serve(t, func(b *bench) { b.SetLogSize(8 << 10) })
	conn, err := net.Dial("unix", b.Store.Socket(e))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, `{"v":%d,"op":"watch","last":-1,"follow":true}`+"\n", control.ProtocolVersion); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 900)
	const turns = 600
	for range turns {
		if result, err := c.Ask(t.Context(), e, control.Message{Text: text}, control.Watcher{}); err != nil || result.Text != text {
			t.Fatalf("%v, %v", result, err)
		}
	}
	if _, err := c.Ask(t.Context(), e, control.Message{Text: "the last"}, control.Watcher{}); err != nil {
		t.Fatal(err)
	}
	var seen, missed, next int64 = 0, 0, 1
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Record *control.LogRecord
			Missed int64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		missed, next = missed+r.Missed, next+r.Missed
		if r.Record == nil {
			continue
		}
		if r.Record.Number != next {
			t.Fatalf("record %d after %d: %v", r.Record.Number, next-1, err)
		}
		seen, next = seen+1, next+1
		if r.Record.Ended != nil && r.Record.Ended.Text == "the last" {
			break
		}
	}
	if missed == 0 || seen+missed != (turns+1)*4 {
		t.Errorf("%d records seen and %d missed, want %d and some of them missed", seen, missed, (turns+1)*4)
	}
	logs, err := filepath.Glob(filepath.Join(b.Store.Folder(e), "events.*"))
	if err != nil || len(logs) == 0 || len(logs) > 3 {
		t.Errorf("%q, %v", logs, err)
	}
}

func TestCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	b, _, c, e := serve(t)
	for call, want := range map[string]string{
		`{"v":1,"op":"show"}`: "version 2",
		fmt.Sprintf(`{"v":%d,"op":"fly"}`, control.ProtocolVersion): "unknown operation",
		"hello": "not understood",
	} {
		conn, err := net.Dial("unix", b.Store.Socket(e))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := ask(conn, call)
		if !strings.Contains(string(answer), want) || !strings.Contains(string(answer), `"kind":"usage"`) {
			t.Errorf("%s is answered by %s", call, answer)
		}
	}
	if _, err := c.Show(t.Context(), e); err != nil {
		t.Error(err)
	}
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	t.Parallel()
	b, _, _, e := serve(t)
	files := 0
	err := filepath.WalkDir(b.Store.Dir(), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			files++
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
	if _, err := b.Start(t.Context(), control.StartOptions{Name: "one", Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a second session of that name: %v", err)
	}
	if found, err := b.Store.Find(e.SessionID[:5]); err != nil || found.SessionID != e.SessionID {
		t.Errorf("%v, %v", found, err)
	}
	if path := control.SocketPath(strings.Repeat("/long", 30)); len(path) > control.MaxSocketName {
		t.Errorf("%s is too long", path)
	}
}

// A message that the session does not take is not logged as one.
func TestRefusedMessage(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t)
	bad := control.Message{Text: strings.Repeat("x", 1001)}
	if _, err := c.Ask(t.Context(), e, bad, control.Watcher{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "its limit is") {
		t.Error(err)
	}
	if _, _, err := c.Steer(t.Context(), e, bad); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
	if result, err := c.Ask(t.Context(), e, control.Message{Text: "good"}, control.Watcher{}); err != nil || result.Text != "good" {
		t.Errorf("%+v, %v", result, err)
	}
	records := 0
	if err := c.Watch(t.Context(), e, control.WatchOptions{Last: -1, Until: session.StateReady}, control.Watcher{Record: func(r *control.LogRecord) error {
		records++
		if strings.Contains(r.Message, "xxx") {
			t.Error("it is logged")
		}
		return nil
	}}); err != nil || records != 4 {
		t.Errorf("%d records, %v", records, err)
	}
	if st, err := c.Show(t.Context(), e); err != nil || st.Waiting != 0 || st.Turns != 1 || st.State != session.StateReady {
		t.Errorf("%+v, %v", st, err)
	}
}

// A watcher that fails ends its own call, and nothing else.
func TestWatcherThatFails(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t)
	full := errors.New("full")
	if _, err := c.Ask(t.Context(), e, control.Message{Text: "hello"}, control.Watcher{Record: func(*control.LogRecord) error { return full }}); !errors.Is(err, full) {
		t.Error(err)
	}
	if result, err := c.Ask(t.Context(), e, control.Message{Text: "again"}, control.Watcher{}); err != nil || result.Text != "again" {
		t.Errorf("%+v, %v", result, err)
	}
}

// A new session under the ID of one that has ended begins with an empty log.
func TestIDThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Serve = true
	c := &control.Client{Store: b.Store}
	for range 2 {
		h := b.start(control.StartOptions{Identity: control.Identity{SessionID: "gt/1"}, InitialPrompt: "hello"})
		b.untilReady(h)
		if err := b.Stop(t.Context(), h, ""); err != nil {
			t.Fatal(err)
		}
		e, err := b.Store.Get("gt/1")
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		if err := c.Watch(t.Context(), e, control.WatchOptions{Last: -1}, control.Watcher{Record: func(r *control.LogRecord) error {
			messages += len(r.Message)
			return nil
		}}); err != nil || messages != len("hello") {
			t.Errorf("%d bytes of messages, %v", messages, err)
		}
	}
}

// warner is a recorder that warns when a turn ends.
type warner struct{}

func (warner) Record(_ context.Context, run agent.Recordable) (agent.Recording, error) {
	return agent.Recording{Events: func(e *agent.Event) error {
		if e.Kind == agent.KindResult {
			run.Warn("no answer")
		}
		return nil
	}}, nil
}

// A warning of the runner is shown to those who wait for the turn it is about.
func TestWarningIsShownInItsTurn(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t, func(b *bench) { b.Runner.Recorder = warner{} })
	for turn := 1; turn <= 2; turn++ {
		warnings := 0
		if _, err := c.Ask(t.Context(), e, control.Message{Text: "hello"}, control.Watcher{Record: func(r *control.LogRecord) error {
			if r.Warning != "" {
				warnings++
				if r.Warning != "no answer" || r.Turn != turn {
					t.Errorf("turn %d: %+v", turn, r)
				}
			}
			return nil
		}}); err != nil || warnings != 1 {
			t.Errorf("turn %d: %d warnings, %v", turn, warnings, err)
		}
	}
}
