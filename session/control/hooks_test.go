package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// hook is a command of the user.
func hook() int {
	switch os.Args[1] {
	case "keep":
		text, err := io.ReadAll(os.Stdin)
		if err == nil {
			err = os.WriteFile(os.Args[2], text, 0o600)
		}
		if err != nil {
			return 9
		}
	case "fail":
		fmt.Fprintln(os.Stderr, "no\nroom")
		return 7
	case "tell":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 490), os.Getenv("MY_API_KEY"), strings.Repeat("y", 490))
		return 7
	case "hang":
		time.Sleep(time.Hour)
	}
	return 0
}

var payload = control.Payload{
	Event: control.SessionStart, Runtime: "claude", SessionID: "gt-abc123", Workdir: "/path/to/worktree", Rig: "greenplace", Role: "polecat",
	Bead: "gp-123", Actor: "greenplace/polecats/ivy",
	Timestamp: control.Timestamp{Time: time.Date(2025, 1, 1, 14, 34, 56, 789, time.FixedZone("", 7200))},
	Data:      map[string]string{"message": "optional runtime-specific fields"},
}

// specified is the payload of the specification, in one line.
const specified = `{"event":"SessionStart","runtime":"claude","session_id":"gt-abc123","workdir":"/path/to/worktree","rig":"greenplace","role":"polecat",` +
	`"bead":"gp-123","actor":"greenplace/polecats/ivy","timestamp":"2025-01-01T12:34:56Z","data":{"message":"optional runtime-specific fields"}}`

func TestPayloadFollowsTheSpecification(t *testing.T) {
	t.Parallel()
	if got, err := payload.JSON(); err != nil || string(got) != specified {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := (control.Payload{}).JSON(); err != nil || !strings.HasSuffix(string(got), `"data":{}}`) {
		t.Errorf("%s, %v", got, err)
	}
}

// warnings collects warnings.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

func (w *warnings) warn(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

func deliver(t *testing.T, n int, sinks ...control.Sink) string {
	t.Helper()
	w := &warnings{}
	h := control.NewHooks(w.warn, sinks...)
	for range n {
		h.Emit(payload)
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.all()
}

func TestFileSink(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "events.ndjson")
	// Several have the same file, as several processes may.
	if got := deliver(t, 50, openFile(t, name), openFile(t, name), openFile(t, name)); got != "" {
		t.Error(got)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), specified+"\n"); lines != 150 || len(text) != 150*(len(specified)+1) {
		t.Errorf("%d lines in %d bytes", lines, len(text))
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func openFile(t *testing.T, name string) control.Sink {
	t.Helper()
	sink, err := control.OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.(io.Closer).Close() })
	return sink
}

// A file is opened once: what takes its place is not written to.
func TestOpenedFileSink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, target, moved := filepath.Join(dir, "events"), filepath.Join(dir, "target"), filepath.Join(dir, "moved")
	sink, err := control.OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	h := control.NewHooks(func(line string) { t.Error(line) }, sink)
	h.Emit(payload)
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Rename(name, moved), os.Symlink(target, name)); err != nil {
		t.Fatal(err)
	}
	h.Emit(payload)
	h.Close(t.Context())
	if text, err := os.ReadFile(moved); err != nil || string(text) != strings.Repeat(specified+"\n", 2) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
	if err := sink.Deliver(t.Context(), payload); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := control.OpenFile(name); err == nil || !strings.HasSuffix(err.Error(), "events is a symbolic link, which hooks do not follow") {
		t.Error(err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for want, spec := range map[string]control.SinkSpec{
		"hook file: " + name + " is a symbolic link, which hooks do not follow": {File: name},
		"hook file: " + pipe + " is not a regular file":                         {File: pipe},
		"hook file: open " + dir + ": is a directory":                           {File: dir},
		`hook command no-such-hook: no executable "no-such-hook" in PATH`:       {Command: []string{"no-such-hook"}},
	} {
		if _, err := spec.Open([]string{"PATH=" + dir}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestCommandSink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "hook")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "kept")
	environ := []string{"PATH=" + dir, "GORACE=atexit_sleep_ms=0"}
	for name, c := range map[string]struct {
		command control.Command
		want    string
	}{
		"by its path": {control.Command{Argv: []string{program, "keep", kept}}, ""},
		"by its name": {control.Command{Argv: []string{"hook", "keep", kept + "2"}}, ""},
		"that fails":  {control.Command{Argv: []string{"hook", "fail"}}, "hook command hook failed (further failures not shown): exit code 7: no room"},
		"that prints secrets": {control.Command{Argv: []string{"hook", "tell"}, Environ: append([]string{"MY_API_KEY=supersecretvalue2"}, environ...)},
			"exit code 7: " + strings.Repeat("x", 490) + "***yyyyyyy"},
		"that hangs":                  {control.Command{Argv: []string{"hook", "hang"}, Timeout: 50 * time.Millisecond}, "it took longer than 50ms"},
		"not installed":               {control.Command{Argv: []string{"no-such-hook"}}, "no executable"},
		"none":                        {control.Command{}, "it names no program"},
		"in the working place":        {control.Command{Argv: []string{"./hook"}}, "give its absolute path"},
		"in PATH by a relative entry": {control.Command{Argv: []string{"hook"}, Environ: []string{"PATH=."}}, "no executable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.command.Environ == nil {
				c.command.Environ = environ
			}
			got := deliver(t, 2, c.command)
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "\n") {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.want == "" {
				text, err := os.ReadFile(c.command.Argv[2])
				if err != nil || string(text) != specified+"\n" || !json.Valid(text) {
					t.Errorf("%q, %v", text, err)
				}
			}
		})
	}
}

func TestSinkThatHangsOrFailsDelaysNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	got := make(chan struct{}, 5000)
	w := &warnings{}
	h := control.NewHooks(w.warn,
		control.Callback(func(context.Context, control.Payload) error { <-release; return nil }),
		control.Callback(func(context.Context, control.Payload) error { return errors.New("broken") }),
		control.Callback(func(context.Context, control.Payload) error { panic("confused") }),
		control.Callback(func(context.Context, control.Payload) error { got <- struct{}{}; return nil }),
	)
	for range 500 {
		h.Emit(payload)
	}
	for range 500 {
		<-got
	}
	testwait.Until(t, "warnings", func() (string, bool) {
		all := w.all()
		return all, strings.Contains(all, "broken") && strings.Contains(all, "it panicked: confused")
	})
	for range 600 { // more than may wait
		h.Emit(payload)
	}
	for range 600 {
		<-got
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"it does not keep up", "broken", "it panicked: confused"} {
		if strings.Count(w.all(), want) != 1 {
			t.Errorf("warnings %q, want one that says %s", w.all(), want)
		}
	}
	var none *control.Hooks
	none.Emit(payload)
	if err := none.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// At the end, what sinks have not taken is given up, and nothing of them is left.
func TestClosedHooksLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	w := &warnings{}
	kept := filepath.Join(dir, "kept")
	h := control.NewHooks(w.warn,
		control.Command{Argv: []string{"/bin/sh", "-c", `sleep 100 & echo $! >"$0.part"; mv "$0.part" "$0"; wait`, pid}},
		control.Callback(func(ctx context.Context, _ control.Payload) error { <-ctx.Done(); return context.Cause(ctx) }), openFile(t, kept))
	for range 500 {
		h.Emit(payload)
	}
	testwait.Until(t, "500 lines", func() (n int, ok bool) {
		text, _ := os.ReadFile(kept)
		n = bytes.Count(text, []byte("\n"))
		return n, n == 500
	})
	child, err := strconv.Atoi(strings.TrimSpace(testwait.File(t, pid)))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := process.Identify(child)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if left := sessiontest.Leaks(func() { h.Close(ctx) }); left != "" {
		t.Error(left)
	}
	if process.LifeOf(identity) != process.Dead {
		t.Error("a process of the command lives")
	}
	for _, want := range []string{"hook command sh failed (further failures not shown): it has not taken all events before the end", "hook function failed"} {
		if strings.Count(w.all(), want) != 1 {
			t.Errorf("warnings %q, want %q", w.all(), want)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || strings.Count(string(text), "\n") != 500 {
		t.Errorf("%d lines, %v", strings.Count(string(text), "\n"), err)
	}
	h.Emit(payload)
	h.Close(t.Context())
	if text, err := os.ReadFile(kept); err != nil || strings.Count(string(text), "\n") != 500 {
		t.Errorf("%d lines after the end, %v", strings.Count(string(text), "\n"), err)
	}
	var none *control.Hooks
	none.Close(t.Context())
}

func TestParseSinks(t *testing.T) {
	t.Parallel()
	got, err := control.ParseSinks([]byte(`[{"file":"/a b"},{"command":["notify","","x"]}]`))
	if err != nil || len(got) != 2 || got[0].File != "/a b" || !slices.Equal(got[1].Command, []string{"notify", "", "x"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{}`: "hooks: ", `[] []`: "after top-level value", `[{}]`: `either "file" or "command"`, `[{"file":"/a"},{"file":"/a","command":["b"]}]`: "hook 2: ",
		`[{"file":"a"}]`: "not an absolute path", `[{"command":[""]}]`: "names no program", `[{"command":["./x"]}]`: "neither a name nor", `[{"shell":"x"}]`: "unknown field", `[{"file":"/\u0000"}]`: "NUL", `[`: "hooks: ",
	} {
		if _, err := control.ParseSinks([]byte(text)); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := control.StoredSinks(t.Context(), nil); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func ExampleHooks() {
	hooks := control.NewHooks(func(line string) { fmt.Println(line) },
		control.Callback(func(_ context.Context, p control.Payload) error {
			fmt.Println(p.Event, p.SessionID)
			return nil
		}),
		control.Command{Argv: []string{"no-such-program", "--json"}},
	)
	hooks.Emit(control.Payload{Event: control.SessionStart, SessionID: "s-1"})
	_ = hooks.Flush(context.Background())
	// Unordered output:
	// SessionStart s-1
	// hook command no-such-program failed (further failures not shown): no executable "no-such-program" in PATH: file does not exist
}
