package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// The test binary is every program of these tests, depending on its name.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "talker":
		os.Exit(talk())
	case "hook":
		os.Exit(hook())
	case "dialer":
		os.Exit(dial(os.Args[1]))
	case "holder": // it ends when its standard input does
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "host":
		os.Exit(host())
	}
	os.Exit(run(m))
}

// run runs the tests and looks for goroutines that they leave.
func run(m *testing.M) (code int) {
	// The first start makes what starts processes from then on.
	if _, err := process.Run(context.Background(), process.Spec{Path: "/bin/sh", Args: []string{"-c", ":"}, Dir: "/"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if left := sessiontest.Leaks(func() { code = m.Run() }); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		return 1
	}
	return code
}

// dial says "connected" and what it is answered.
func dial(path string) int {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Print("connected ")
	answer, _ := ask(conn, show())
	os.Stdout.Write(answer)
	return 0
}

// host holds the session that a client has started it for.
func host() int {
	err := control.Serve(context.Background(), os.Stdin, func(_ control.Settings, warn func(string)) (*control.Manager, error) {
		var r registry.Registry
		return &control.Manager{Runner: &runner.Runner{Registry: &r, Warn: warn}}, r.Register(talker("talker"))
	})
	if err != nil {
		return 1
	}
	return 0
}

// talk is an agent: each line it is sent is a turn.
func talk() int {
	fmt.Println("session " + strings.TrimPrefix(strings.Join(os.Args[1:], " "), "resume="))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "die": // when a file appears
			if !testwait.Exists(rest) {
				panic(rest + " does not appear")
			}
			return 3
		case "env":
			fmt.Printf("text %s=%s\nresult\n", rest, os.Getenv(rest))
		case "fail":
			fmt.Println("failed " + rest)
		case "ask":
			fmt.Println("ask")
		case "interrupted":
			fmt.Println("failed by the user")
		case "hold": // a turn that runs until a file appears
			if !testwait.Exists(rest) {
				panic(rest + " does not appear")
			}
			fmt.Println("result")
		case "rename": // when a file appears
			if !testwait.Exists(rest) {
				panic(rest + " does not appear")
			}
			fmt.Println("renamed native-renamed\nresult")
		default:
			fmt.Printf("text %s\nresult\n", lines.Text())
		}
	}
	return 0
}

func (b *bench) makeFile(name string) {
	b.t.Helper()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// talkEngine speaks with talk.
type talkEngine struct {
	input  io.WriteCloser
	asking atomic.Bool // the turn waits for an answer, so that it can be interrupted
}

func (e *talkEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input = t.Input
	greeting, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		reader := bufio.NewReader(t.Output)
		for {
			line, err := reader.ReadString('\n')
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "session":
				greeting <- rest
			case "renamed":
				sink.Event(&agent.Event{Kind: agent.KindSessionStarted, SessionID: rest})
			case "text":
				sink.Event(&agent.Event{Kind: agent.KindText, Text: rest})
			case "ask":
				sink.Event(&agent.Event{Kind: agent.KindApproval, ApprovalID: "1"})
			case "result":
				sink.Event(&agent.Event{Kind: agent.KindResult})
			case "failed":
				sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Text: rest})
			}
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				sink.Closed(err)
				return
			}
		}
	}()
	select {
	case id := <-greeting:
		if id == "" {
			id = "native-new"
		}
		return engine.Info{SessionID: id + createdWord(start)}, nil
	case <-ended:
		return engine.Info{}, errors.New("no greeting")
	case <-ctx.Done():
		return engine.Info{}, context.Cause(ctx)
	}
}

// createdWord reports to the tests what the engine got.
func createdWord(start engine.Start) string {
	if start.Resume != "" && start.Created.IsZero() {
		return "-of-unknown-age"
	}
	return ""
}

func (e *talkEngine) Send(_ context.Context, text string) error {
	e.asking.Store(text == "ask")
	_, err := io.WriteString(e.input, text+"\n")
	return err
}

// SendAttached sends a line with the text and the names and sizes of the files.
func (e *talkEngine) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	text = strings.ReplaceAll(text, "\n", "|")
	for _, file := range files {
		text += fmt.Sprintf(" +%s:%d", file.Name, len(file.Data))
	}
	return e.Send(ctx, text)
}

func (e *talkEngine) Steer(context.Context, string) error { return session.ErrUnsupported }
func (e *talkEngine) Interrupt(context.Context) error {
	if !e.asking.Swap(false) {
		return nil
	}
	_, err := io.WriteString(e.input, "interrupted\n")
	return err
}
func (e *talkEngine) Answer(_ context.Context, _ string, d session.Decision) error {
	e.asking.Store(false)
	_, err := io.WriteString(e.input, "answered "+string(d)+"\n")
	return err
}
func (e *talkEngine) Close() error { return e.input.Close() }

func talker(id string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "The " + id, Executables: []string{"talker"}, InstallURL: "https://example.com/" + id, Variants: []string{"local"},
		Run:     registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Decoder: formatters.Generic, PromptLimit: registry.Limit{Bytes: 1000},
		Session: &registry.Session{
			Use: registry.Use{
				Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true, Attachments: []string{agent.MediaPNG}},
				Command: func(inv registry.Invocation) (agent.Command, error) {
					c := agent.Command{}
					if inv.Resume != "" {
						c.Args = []string{"resume=" + inv.Resume}
					}
					return c, nil
				},
			},
			Engine:     func(registry.Invocation) engine.Engine { return new(talkEngine) },
			SessionEnv: "TALKER_SESSION_ID",
		},
		Home: registry.Home{Env: "TALKER_HOME"},
		Terminal: &registry.Terminal{
			Use:    registry.Use{Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true, Attachments: []string{agent.MediaPNG}}, Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
			Resume: registry.ResumeFlag,
		},
	}
}

// bench is a Manager with a talker, and the events of its hooks.
type bench struct {
	*control.Manager
	t       *testing.T
	workdir string
	bin     string

	mu       sync.Mutex
	warnings []string
	events   []control.Payload
}

func newBench(t *testing.T, environ ...string) *bench {
	t.Helper()
	b := &bench{t: t, workdir: t.TempDir(), bin: t.TempDir()}
	bin := b.bin
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"talker", "holder", "host"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	plain := talker("mute")
	plain.Session, plain.Terminal = nil, nil
	var r registry.Registry
	for _, rt := range []registry.Runtime{talker("talker"), talker("other"), plain} {
		if err := r.Register(rt); err != nil {
			t.Fatal(err)
		}
	}
	warn := func(line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.warnings = append(b.warnings, line)
	}
	b.Manager = &control.Manager{
		Runner: &runner.Runner{
			Registry: &r, Warn: warn,
			Environ: append([]string{"PATH=" + bin, "TMPDIR=" + t.TempDir(), "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}, environ...),
		},
		Store: control.NewStore(filepath.Join(t.TempDir(), "state", "sessions")),
		Hooks: control.NewHooks(warn, control.Callback(func(_ context.Context, p control.Payload) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, p)
			return nil
		})),
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) start(opts control.StartOptions) control.SessionHandle {
	b.t.Helper()
	return b.startWith(opts, session.Options{})
}

func (b *bench) startWith(opts control.StartOptions, options session.Options) control.SessionHandle {
	b.t.Helper()
	if opts.Runtime == "" {
		opts.Runtime = "talker"
	}
	if opts.Workdir == "" {
		opts.Workdir = b.workdir
	}
	h, err := b.StartWith(b.t.Context(), opts, options)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// ask sends a message and returns the answer.
func (b *bench) ask(h control.SessionHandle, text string) string {
	b.t.Helper()
	turn, err := b.Send(h, control.Message{Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	result, err := turn.Wait(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return result.Text
}

// hooked returns the events that the hooks got, a line each.
func (b *bench) hooked() string {
	b.t.Helper()
	if err := b.Hooks.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, p := range b.events {
		lines = append(lines, string(p.Event)+" "+p.Data["message"])
	}
	return strings.Join(lines, "\n")
}

// until waits for the entry of a session to be in a state.
func (b *bench) until(h control.SessionHandle, want session.State) control.Entry {
	b.t.Helper()
	return testwait.Until(b.t, "state "+string(want), func() (control.Entry, bool) {
		e, err := b.Store.Get(h.SessionID)
		if err != nil {
			b.t.Fatal(err)
		}
		return e, e.State == want
	})
}

// untilReady waits until a session says that it takes a message. Its entry can be
// that of a turn before.
func (b *bench) untilReady(h control.SessionHandle) {
	b.t.Helper()
	testwait.Until(b.t, "a session that takes a message", func() (ready, ok bool) {
		ready, err := b.IsReady(b.t.Context(), h)
		if err != nil {
			b.t.Fatal(err)
		}
		return ready, ready
	})
}
