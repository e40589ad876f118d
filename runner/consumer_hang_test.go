package runner_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// consumers are the ways to receive the output of an agent.
var consumers = map[string]func(*agent.Output, func() error){
	"events": func(out *agent.Output, take func() error) {
		out.Events = func(*agent.Event) error { return take() }
	},
	"text":   func(out *agent.Output, take func() error) { out.Text = taking(take) },
	"stdout": func(out *agent.Output, take func() error) { out.Stdout = taking(take) },
	"stderr": func(out *agent.Output, take func() error) { out.Stderr = taking(take) },
}

func taking(take func() error) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		if err := take(); err != nil {
			return 0, err
		}
		return len(b), nil
	})
}

// A blocked consumer delays the return of Run, but not the end of the agent.
func TestRunEndsTheAgentOfABlockedConsumer(t *testing.T) {
	t.Parallel()
	for name, set := range consumers {
		for why, kind := range map[string]error{"timeout": agent.ErrTimeout, "cancel": agent.ErrCanceled} {
			if why == "timeout" && (name == "text" || name == "stdout") {
				continue // covered by events, and slow
			}
			t.Run(name+" "+why, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "alpha")
				h := newTether(t)
				req := b.request("hold "+h.path, "stderr hi", "say text:hi", "flood text:more")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if why == "timeout" {
					req.Timeout = ample
				}
				blocked, release := make(chan struct{}), make(chan struct{})
				first := true
				var out agent.Output
				set(&out, func() error {
					if first {
						first = false
						close(blocked)
						<-release
					}
					return nil
				})
				ended := b.start(ctx, req, out)
				select {
				case <-blocked:
				case end := <-ended:
					t.Fatalf("Run = %v before the consumer was called", end.err)
				}
				if why == "cancel" {
					cancel()
				}
				h.expectGone(t, "the agent")
				select {
				case end := <-ended:
					t.Errorf("Run = %v while a consumer was still called", end.err)
				default:
				}
				close(release)
				if end := within(t, ended); !errors.Is(end.err, kind) {
					t.Errorf("Run = %v, want %v", end.err, kind)
				}
			})
		}
	}
}

// A consumer that fails ends an endless agent and is not called again.
func TestRunEndsTheAgentOfAFailedConsumer(t *testing.T) {
	t.Parallel()
	for name, set := range consumers {
		for how, script := range map[string]string{"that is silent": "hang", "that writes on": "flood text:more"} {
			t.Run(name+" of an agent "+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "alpha")
				h := newTether(t)
				req := b.request("hold "+h.path, "stderr hi", "say text:hi", script)
				calls := 0
				var out agent.Output
				set(&out, func() error { calls++; return syscall.EPIPE })
				end := within(t, b.start(t.Context(), req, out))
				if !errors.Is(end.err, agent.ErrCanceled) || !errors.Is(end.err, syscall.EPIPE) || calls != 1 {
					t.Errorf("Run = %v after %d calls, want the consumer's error after one", end.err, calls)
				}
				h.expectGone(t, "the agent")
			})
		}
	}
	t.Run("short write", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("say text:hi", "hang")
		out := agent.Output{Stdout: writerFunc(func(b []byte) (int, error) { return len(b) - 1, nil })}
		if end := within(t, b.start(t.Context(), req, out)); !errors.Is(end.err, io.ErrShortWrite) {
			t.Errorf("Run = %v, want the short write", end.err)
		}
	})
}
