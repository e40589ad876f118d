package acpagent_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/engine"
)

// served is a server as the process of an engine.
type served struct {
	end  context.CancelFunc
	done chan struct{}
}

func (s *served) Stop()                 { s.end() }
func (s *served) Done() <-chan struct{} { return s.done }

// open opens a session of the engine for the protocol with a server.
func (b *bench) open(o session.Options, start engine.Start) (*session.Session, error) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, end := context.WithCancel(context.Background())
	s := &served{end, make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = b.server.Serve(ctx, in, out) // the engine sees the end
		out.Close()
		in.Close()
	}()
	start.Workdir = b.workdir
	modes := map[agent.Access]string{agent.AccessRead: "read", agent.AccessWrite: "write", agent.AccessFull: "full"}
	return session.Open(context.Background(), "acp", &acp.Engine{Modes: modes}, s, engine.Transport{Input: toServer, Output: fromServer}, start, o)
}

// The engine of this module is a client too, so an agent can be reached through two
// servers: with its text, tools, approvals, questions, interrupts and settings.
func TestThroughTheEngine(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	var mu sync.Mutex
	var kinds []string
	s, err := b.open(session.Options{
		Events: func(e *agent.Event) error {
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, string(e.Kind))
			return nil
		},
		Approve: func(context.Context, session.Approval) session.Decision { return session.AcceptForSession },
		Ask:     func(context.Context, session.QuestionRequest) [][]string { return [][]string{{"red"}, {"Al"}} },
	}, engine.Start{Access: agent.AccessRead, Model: "big"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background(), "done")
	send := func(text string) (agent.Result, error) {
		return s.Send(session.Message{Text: text}).Wait(t.Context())
	}
	for prompt, want := range map[string]string{
		"hello": "echo hello access=write model= ", "say": "three",
		"ask": "accept_for_session", "question": `[["red"],["Al"]]`,
	} {
		if got, err := send(prompt); err != nil || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q, %v; want %q", prompt, got.Text, err, want)
		}
	}
	mu.Lock()
	kinds = nil
	mu.Unlock()
	got, err := send("work")
	if err != nil || got.Usage == nil || got.Usage.Input != 7 || got.Usage.Output != 3 || got.Usage.Context != 10 {
		t.Errorf("usage %+v, %v", got.Usage, err)
	}
	mu.Lock()
	if got, want := strings.Join(kinds, " "), "tool_call tool_result tool_call tool_result heartbeat plan usage usage result"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	mu.Unlock()
	for prompt, want := range map[string]error{"login": agent.ErrAuthentication, "broken": agent.ErrAgent, "tokens": agent.ErrAgent} {
		if _, err := send(prompt); agent.KindOf(err) != agent.KindOf(want) {
			t.Errorf("%s: %v, want %v", prompt, err, want)
		}
	}
	turn := s.Send(session.Message{Text: "wait"})
	testwait.Until(t, "the turn runs", func() ([]string, bool) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(kinds), kinds[len(kinds)-1] == "text"
	})
	if err := s.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Wait(t.Context()); agent.KindOf(err) != "canceled" {
		t.Errorf("interrupted: %v", err)
	}
	id := s.Info().SessionID
	testwait.Until(t, "the settings are kept", func() (control.Entry, bool) {
		e, err := b.store.Get(id)
		return e, err == nil && e.Access == agent.AccessRead && e.Model == "big"
	})
	s.Stop(context.Background(), "done")

	again, err := b.open(session.Options{}, engine.Start{Resume: id, Access: agent.AccessRead})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop(context.Background(), "done")
	if got, err := again.Send(session.Message{Text: "hello"}).Wait(t.Context()); err != nil || !strings.HasPrefix(got.Text, "echo hello access=read model=big") {
		t.Errorf("resumed: %q, %v", got.Text, err)
	}
}
