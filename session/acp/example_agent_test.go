package acp_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// exampleAgent is the import path of an agent that the protocol's SDK brings.
const exampleAgent = "github.com/coder/acp-go-sdk/example/agent"

// buildExampleAgent builds the example agent as it is, but for its pauses, which
// are for viewers, and for its arguments, which it would take for a
// client to start.
func buildExampleAgent(t *testing.T) string {
	t.Helper()
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", exampleAgent).Output()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	hasty := bytes.ReplaceAll(code, []byte("time.NewTimer(d)"), []byte("time.NewTimer(d / 50)"))
	if bytes.Equal(hasty, code) {
		t.Fatal("the example agent has no pause")
	}
	hasty = bytes.ReplaceAll(hasty, []byte("len(os.Args) > 1"), []byte("false"))
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "agent")
	if err := os.WriteFile(source, hasty, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

// running is an agent's process.
type running struct {
	command *exec.Cmd
	done    chan struct{}
}

func (r *running) Stop()                 { _ = r.command.Process.Kill() } // or it has ended
func (r *running) Done() <-chan struct{} { return r.done }

// start starts a program and opens a session with it.
func start(t *testing.T, program string, o session.Options) (*session.Session, *running) {
	t.Helper()
	toAgent, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	output, fromAgent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Stdin, command.Stdout = toAgent, fromAgent
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	toAgent.Close()
	fromAgent.Close()
	r := &running{command, make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended is of no interest
		close(r.done)
	}()
	s, err := session.Open(t.Context(), "example", &acp.Engine{}, r, engine.Transport{Input: input, Output: output}, engine.Start{Workdir: t.TempDir()}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t.Context(), "")
		output.Close()
	})
	return s, r
}

// TestExampleAgent holds conversations with a real agent process.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	program := buildExampleAgent(t)
	const (
		accepted = " Perfect! I've successfully updated the configuration. The changes have been applied."
		declined = " I understand you prefer not to make that change. I'll skip the configuration update."
	)
	t.Run("two turns", func(t *testing.T) {
		t.Parallel()
		var kinds []string
		decisions := []engine.Decision{engine.Accept, engine.Decline}
		s, r := start(t, program, session.Options{
			Events: func(e *agent.Event) error { kinds = append(kinds, string(e.Kind)); return nil },
		})
		for i, want := range []string{accepted, declined} {
			turn := s.Send(session.Message{Text: "go"})
			answer(t, s, turn, decisions[i])
			result, err := turn.Wait(t.Context())
			if err != nil || result.Text != want {
				t.Errorf("%+v, %v", result, err)
			}
		}
		s.Stop(t.Context(), "")
		if !r.command.ProcessState.Success() {
			t.Errorf("it did not end by itself: %v", r.command.ProcessState)
		}
		const turn = " text text tool_call tool_result text tool_call approval"
		if got, want := strings.Join(kinds, " "), "session_started"+turn+" tool_call tool_result text result"+turn+" text result"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t, program, session.Options{})
		turn := s.Send(session.Message{Text: "go"})
		answer(t, s, turn, engine.Cancel)
		if _, err := turn.Wait(t.Context()); err != nil && !errors.Is(err, agent.ErrCanceled) {
			t.Error(err)
		}
		turn = s.Send(session.Message{Text: "continue"})
		answer(t, s, turn, engine.Accept)
		if result, err := turn.Wait(t.Context()); err != nil || result.Text != accepted {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		speaks := make(chan struct{})
		var once sync.Once
		s, _ := start(t, program, session.Options{Events: func(e *agent.Event) error {
			if e.Kind == agent.KindText {
				once.Do(func() { close(speaks) })
			}
			return nil
		}})
		turn := s.Send(session.Message{Text: "go"})
		<-speaks
		if err := s.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) {
			t.Error(err)
		}
		turn = s.Send(session.Message{Text: "continue"})
		answer(t, s, turn, engine.Decline)
		if result, err := turn.Wait(t.Context()); err != nil || result.Text != declined {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s, r := start(t, program, session.Options{})
		turn := s.Send(session.Message{Text: "go"})
		r.Stop()
		if _, err := turn.Wait(t.Context()); err == nil {
			t.Error("the turn succeeded")
		}
	})
}

// answer answers the request of a turn.
func answer(t *testing.T, s *session.Session, turn *session.Turn, d engine.Decision) {
	t.Helper()
	testwait.Until(t, "a request", func() (int, bool) {
		select {
		case <-turn.Done():
			t.Fatal("the turn ended without a request")
		default:
		}
		n := len(s.Approvals())
		return n, n > 0
	})
	if err := s.Answer(t.Context(), s.Approvals()[0].ID, d); err != nil {
		t.Error(err)
	}
}
