package runner_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// recorded makes the bench record to r.
func (b *bench) recorded(r agent.Recording) { b.Recorder = recorderOf(r) }

type recorderOf agent.Recording

func (r recorderOf) Record(context.Context, agent.Recordable) (agent.Recording, error) {
	return agent.Recording(r), nil
}

// A consumer that failed is not called again, even if output remains to be delivered: an
// incomplete line, the other stream, collected text.
func TestFailedConsumerIsNotCalledAgain(t *testing.T) {
	t.Parallel()
	type set func(*bench, *agent.Output, func() error)
	all := map[string]set{
		"all in one": func(_ *bench, out *agent.Output, take func() error) {
			one := &oneWriter{take}
			out.Stdout, out.Stderr, out.Text = one, one, one
		},
		"recorded events": func(b *bench, _ *agent.Output, take func() error) {
			b.recorded(agent.Recording{Events: func(*agent.Event) error { return take() }})
		},
		"recorded stdout": func(b *bench, _ *agent.Output, take func() error) {
			b.recorded(agent.Recording{Stdout: taking(take)})
		},
		"recorded stderr": func(b *bench, _ *agent.Output, take func() error) {
			b.recorded(agent.Recording{Stderr: taking(take)})
		},
	}
	for name, by := range consumers {
		all[name] = func(_ *bench, out *agent.Output, take func() error) { by(out, take) }
	}
	ways := map[string]func() error{
		"error":   func() error { return io.ErrClosedPipe },
		"panic":   func() error { panic("mine") },
		"goexit":  func() error { runtime.Goexit(); return nil },
		"nothing": func() error { return nil },
	}
	for name, by := range all {
		for how, fail := range ways {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "alpha")
				// In one write, so that the incomplete line is read with the failing one.
				req := b.request("stderr hush", `bytes "text:hi\ntext:more\ntext:half"`)
				var calls atomic.Int64
				var out agent.Output
				by(b, &out, func() error { calls.Add(1); return fail() })
				defer func() {
					if value := recover(); (value != nil) != (how == "panic") {
						t.Errorf("recovered %v", value)
					}
					if n := calls.Load(); how != "nothing" && n != 1 {
						t.Errorf("called %d times", n)
					} else if n == 0 {
						t.Error("not called")
					}
				}()
				if _, err := b.Run(t.Context(), req, out); how != "nothing" && !errors.Is(err, agent.ErrCanceled) {
					t.Errorf("Run = %v, want it stopped", err)
				}
			})
		}
	}
}

// oneWriter is comparable.
type oneWriter struct{ take func() error }

func (w *oneWriter) Write(b []byte) (int, error) {
	if err := w.take(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// The same holds for the recorder of a session, which several goroutines call.
func TestFailedConsumerOfASessionIsNotCalledAgain(t *testing.T) {
	t.Parallel()
	recordings := map[string]func(func() error) agent.Recording{
		"events": func(take func() error) agent.Recording {
			return agent.Recording{Events: func(*agent.Event) error { return take() }}
		},
		"message": func(take func() error) agent.Recording {
			return agent.Recording{Message: func(agent.UserMessage) error { return take() }}
		},
		"stdout": func(take func() error) agent.Recording { return agent.Recording{Stdout: taking(take)} },
		"stderr": func(take func() error) agent.Recording { return agent.Recording{Stderr: taking(take)} },
	}
	for name, recording := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			var calls atomic.Int64
			b.recorded(recording(func() error { calls.Add(1); return io.ErrClosedPipe }))
			req := b.sessionRequest("stderr hush", `bytes "session:s1\ntext:hi\ntext:more\ntext:half"`, "converse")
			s, err := b.StartSession(t.Context(), req, session.Options{})
			if err == nil {
				for range 3 {
					s.Send(session.Message{Text: "again"})
				}
				<-s.Ended()
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("called %d times", n)
			}
		})
	}
}
