package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/engine"
)

func TestTmuxHasTheModeOfTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var resumed []string
	b.Runner.OpenTerminal = func(_ context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
		resumed = append(resumed, start.Resume)
		held := &terminal{done: make(chan struct{}), ended: p.Ended}
		return held, held, nil
	}
	h := b.start(control.StartOptions{Settings: control.Settings{Mode: session.ModeTmux}})
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "x", Delivery: engine.DeliverTmux}); err != nil {
		t.Error(err)
	}
	if e := b.until(h, session.StateReady); e.Mode != session.ModeTmux {
		t.Errorf("%+v", e)
	}
	if err := b.Stop(t.Context(), h, "done"); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "of a terminal"}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %q, want %q", resumed, want)
	}
	if _, err := b.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "mute", Workdir: b.workdir, Mode: session.ModeTmux}}); !errors.Is(err, agent.ErrUsage) ||
		!strings.Contains(err.Error(), "cannot be held in a terminal") {
		t.Error(err)
	}
	if _, err := b.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir, Mode: session.ModeTmux},
		InitialPrompt: "what?", InitialAttachments: []agent.Attachment{picture}}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "cannot pass the file") || len(resumed) != 2 {
		t.Errorf("%v, want a usage error; %d terminals were opened", err, len(resumed))
	}
	b.Runner.OpenTerminal = nil
	if _, err := b.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir, Mode: session.ModeTmux}}); !errors.Is(err, session.ErrNoTerminals) ||
		!strings.Contains(err.Error(), `import _ "github.com/busdk/bus-agent/session/tmux"`) {
		t.Error(err)
	}
}

// terminal is the engine and the process of an agent that answers in silence.
type terminal struct {
	sink  engine.Sink
	done  chan struct{}
	once  sync.Once
	ended func(survived int)
}

func (e *terminal) Open(_ context.Context, _ engine.Transport, _ engine.Start, sink engine.Sink) (engine.Info, error) {
	e.sink = sink
	return engine.Info{SessionID: "of a terminal"}, nil
}
func (e *terminal) Send(context.Context, string) error {
	go e.sink.Event(&agent.Event{Kind: agent.KindResult})
	return nil
}
func (e *terminal) Steer(context.Context, string) error                    { return session.ErrUnsupported }
func (e *terminal) Interrupt(context.Context) error                        { return nil }
func (e *terminal) Answer(context.Context, string, session.Decision) error { return session.ErrTooLate }
func (e *terminal) Close() error                                           { return nil }
func (e *terminal) Done() <-chan struct{}                                  { return e.done }
func (e *terminal) Stop() {
	e.once.Do(func() {
		go e.sink.Closed(nil)
		e.ended(0)
		close(e.done)
	})
}
