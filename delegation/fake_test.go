package delegation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/engine"
)

// The test binary is also the agent, under the name of the executable.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "mimic" {
		os.Exit(mimic())
	}
	delegation.IgnoreAncestors() // an agent can run the tests
	os.Unsetenv(delegation.EnvBounds)
	os.Exit(m.Run())
}

// mimic is an agent whose prompt is what it does, a step a line.
func mimic() int {
	if len(os.Args) > 1 && os.Args[1] == "nested" {
		fmt.Println(nested())
		return 0
	}
	if len(os.Args) > 1 && os.Args[1] == "session" {
		return converse()
	}
	prompt, _ := io.ReadAll(os.Stdin)
	say(agent.Event{Kind: agent.KindSessionStarted, SessionID: "native-1", Model: "mimic-1"})
	for step := range strings.SplitSeq(strings.TrimSpace(string(prompt)), "\n") {
		verb, rest, _ := strings.Cut(step, " ")
		switch verb {
		case "env":
			say(agent.Event{Kind: agent.KindText, Text: os.Getenv(rest)})
		case "access":
			say(agent.Event{Kind: agent.KindText, Text: os.Args[1]})
		case "call":
			say(agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "1", Name: "Bash", Input: json.RawMessage(rest)}})
		case "change":
			say(agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: rest, Action: "add"}}})
		case "long":
			say(agent.Event{Kind: agent.KindText, Text: "begin" + strings.Repeat("é", 100_000) + "end"})
		case "nest": // in an environment without variables
			c := exec.Command(os.Args[0], "nested")
			c.Env = []string{"HOME=" + os.Getenv("HOME")}
			out, _ := c.CombinedOutput()
			say(agent.Event{Kind: agent.KindText, Text: strings.TrimSpace(string(out))})
		case "hang":
			if err := hang(rest); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		case "fail":
			say(agent.Event{Kind: agent.KindResult, Failed: true, Text: rest})
			return 1
		default:
			say(agent.Event{Kind: agent.KindText, Text: step})
		}
	}
	say(agent.Event{Kind: agent.KindResult})
	return 0
}

// hang does nothing until it is killed. It holds a lock on the file name, in which it
// writes something once it holds it; see backendtest.Locked.
func hang(name string) error {
	lock, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if _, err := lock.WriteString("running"); err != nil {
		return err
	}
	for {
		time.Sleep(time.Hour)
	}
}

// converse is mimic in a session: each line is a message.
func converse() int {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "approve":
			say(agent.Event{Kind: agent.KindApproval, ApprovalID: "1", Text: rest, Tool: &agent.Tool{Name: "Bash", Input: json.RawMessage(`{"command":"make` + strings.TrimSuffix(rest, "\x1b[2J") + `"}`)}})
			continue
		case "question":
			say(agent.Event{Kind: agent.KindQuestion, ApprovalID: "2", Questions: []agent.Question{{Text: "Which?" + rest, Options: []agent.Option{{Label: "red"}, {Label: "blue"}}}}})
			continue
		case "interrupt":
			say(agent.Event{Kind: agent.KindResult, Failed: true, Interrupted: true, Text: "interrupted"})
			continue
		case "hold":
			_ = os.WriteFile(rest, nil, 0o600)
			continue
		case "env":
			say(agent.Event{Kind: agent.KindText, Text: os.Getenv(rest)})
		case "call":
			say(agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "1", Name: "Bash", Input: json.RawMessage(rest)}})
		case "change":
			say(agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: rest, Action: "add"}}})
		default:
			say(agent.Event{Kind: agent.KindText, Text: lines.Text()})
		}
		say(agent.Event{Kind: agent.KindResult})
	}
	return 0
}

// mimicEngine is the engine of converse.
type mimicEngine struct{ input io.WriteCloser }

func (e *mimicEngine) Open(_ context.Context, t engine.Transport, _ engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input = t.Input
	go func() {
		lines := bufio.NewScanner(t.Output)
		for lines.Scan() {
			for _, event := range (decoder{}).Decode(lines.Bytes(), nil) {
				sink.Event(&event)
			}
		}
		sink.Closed(lines.Err())
	}()
	return engine.Info{SessionID: "native-2", Model: "mimic-1"}, nil
}

func (e *mimicEngine) Send(_ context.Context, text string) error {
	_, err := io.WriteString(e.input, text+"\n")
	return err
}
func (e *mimicEngine) Steer(context.Context, string) error { return engine.ErrUnsupported }
func (e *mimicEngine) Interrupt(ctx context.Context) error { return e.Send(ctx, "interrupt") }
func (e *mimicEngine) Close() error                        { return e.input.Close() }
func (e *mimicEngine) Answer(ctx context.Context, _ string, d engine.Decision) error {
	return e.Send(ctx, "decision: "+string(d))
}
func (e *mimicEngine) AnswerQuestions(ctx context.Context, _ string, answers [][]string) error {
	return e.Send(ctx, "answer: "+answers[0][0])
}

// nested returns the bounds of a broker in this process.
func nested() string {
	b, err := delegation.New(delegation.Settings{Access: agent.AccessFull, Depth: 9, Runner: &runner.Runner{Registry: new(registry.Registry)}})
	if err != nil {
		return err.Error()
	}
	o := b.Runtimes(context.Background(), false)
	return fmt.Sprintf("%s %d", o.Access, o.Depth)
}

func say(e agent.Event) {
	line, _ := json.Marshal(e)
	fmt.Printf("%s\n", line)
}

// decoder reads events as mimic writes them.
type decoder struct{}

func (decoder) Decode(line []byte, events []agent.Event) []agent.Event {
	var e agent.Event
	if json.Unmarshal(line, &e) != nil {
		e = agent.Event{Kind: agent.KindRaw, Text: string(line)}
	}
	return append(events, e)
}

func mimicRuntime() registry.Runtime {
	return registry.Runtime{
		ID: "mimic", Name: "Mimic", Executables: []string{"mimic"}, InstallURL: "https://example.com/mimic",
		Decoder: func() formatters.Decoder { return decoder{} }, ReportsResult: true,
		Run: registry.Use{
			Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true, Schema: func(registry.Invocation) bool { return true }},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Args: []string{string(inv.Access)}, Stdin: inv.Prompt}, nil
			},
		},
		Session: &registry.Session{
			Use: registry.Use{
				Options: registry.Options{Model: true, Access: agent.Accesses()},
				Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{Args: []string{"session"}}, nil },
			},
			Engine: func(registry.Invocation) engine.Engine { return &mimicEngine{} },
		},
	}
}

// settings returns settings with one runtime, mimic, and the environment of a user.
func settings(t *testing.T, environ ...string) delegation.Settings {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "mimic")); err != nil {
		t.Fatal(err)
	}
	var r registry.Registry
	if err := r.Register(mimicRuntime()); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return delegation.Settings{
		Workdir: t.TempDir(), Store: control.NewStore(filepath.Join(t.TempDir(), "sessions")),
		Runner: &runner.Runner{
			Registry: &r, Environ: slices.Concat([]string{"PATH=" + bin, "HOME=" + home, "TMPDIR=" + home}, environ),
			Warn: func(line string) { t.Log(line) },
		},
	}
}

// broker returns a broker that ends with the test.
func broker(t *testing.T, s delegation.Settings) *delegation.Broker {
	t.Helper()
	b, err := delegation.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
