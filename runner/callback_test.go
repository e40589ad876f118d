package runner_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// A slow consumer does not change the outcome of a run.
func TestRunIsNotJudgedByItsConsumer(t *testing.T) {
	t.Parallel()
	const silence, long = time.Second, 1500 * time.Millisecond // of an agent, of its consumer
	slow := func(kind agent.Kind, then func()) func(*agent.Event) error {
		return func(e *agent.Event) error {
			if e.Kind == kind {
				<-time.After(long)
				then()
			}
			return nil
		}
	}
	t.Run("slow after the result of an agent that fails", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		b.SetResultSilence(silence)
		req := b.request("say ok:", "exit 3")
		out := agent.Output{Events: slow(agent.KindResult, func() {})}
		var exit *agent.ExitError
		if result, err := b.Run(t.Context(), req, out); !errors.As(err, &exit) || exit.Code != 3 || len(result.Warnings) != 0 {
			t.Errorf("Run = %v, warnings %q, want exit code 3", err, result.Warnings)
		}
	})
	t.Run("slow after the result of an agent that has more to say", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		b.SetResultSilence(silence)
		var stdout bytes.Buffer
		req := b.request("say ok:", "many 100000", "say failed: after all")
		var out agent.Output
		out.Events, out.Stdout = slow(agent.KindResult, func() {}), &stdout
		if _, err := b.Run(t.Context(), req, out); err == nil || !strings.HasSuffix(stdout.String(), "failed: after all\n") {
			t.Errorf("Run = %v with %d bytes, want the failure at the end", err, stdout.Len())
		}
	})
	t.Run("slow with an idle timeout", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("many 20", "say text:hi", "say ok:")
		req.IdleTimeout = 2 * silence
		seen := false
		var out agent.Output
		out.Events = func(*agent.Event) error {
			if !seen {
				seen = true
				<-time.After(2 * long)
			}
			return nil
		}
		if result, err := b.Run(t.Context(), req, out); err != nil || result.Text != "hi" {
			t.Errorf("Run = %q, %v, want success", result.Text, err)
		}
	})
	t.Run("canceled after the agent was done", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		ctx, cancel := context.WithCancel(t.Context())
		req := b.request("say text:hi", "say ok:")
		out := agent.Output{Events: slow(agent.KindResult, cancel)}
		if result, err := b.Run(ctx, req, out); err != nil || result.Text != "hi" {
			t.Errorf("Run = %q, %v, want success", result.Text, err)
		}
	})
	t.Run("fails on what comes after the result of an agent that does not exit", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		b.SetResultSilence(50 * time.Millisecond)
		broken := errors.New("disk full")
		req := b.request(`bytes "ok:\nthe end"`, "hang") // in one write, or it may be silent between them
		var out agent.Output
		out.Events = func(e *agent.Event) error {
			if e.Kind == agent.KindRaw {
				return broken
			}
			return nil
		}
		if _, err := b.Run(t.Context(), req, out); !errors.Is(err, broken) {
			t.Errorf("Run = %v, want the consumer's error", err)
		}
	})
}

func TestRunContinuesWithAnotherTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.SetResultSilence(50 * time.Millisecond)
	req := b.request("say open:x", "say ok:", "say text:back to work", "say open:", "hang")
	req.Timeout = time.Second
	if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrTimeout) {
		t.Errorf("Run = %v, want a timeout: the second turn has no result", err)
	}
	req = b.request("say open:x", "say text:done", "say ok:", "say subagent:late", "say open:", "hang")
	if result, err := b.Run(t.Context(), req, agent.Output{}); err != nil || result.Text != "done" {
		t.Errorf("Run = %q, %v, want success: only the background task went on", result.Text, err)
	}
}

func TestRunOneWriterForEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("both 500", "say text:hi", "say ok:")
	var all bytes.Buffer // not safe for concurrent use
	var out agent.Output
	out.Stdout, out.Stderr, out.Text = &all, &all, &all
	if _, err := b.Run(t.Context(), req, out); err != nil {
		t.Fatal(err)
	}
	if got, want := all.Len(), 500*len("beat:\nnoise\n")+len("text:hi\nok:\nhi\n"); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestRunPanicOfACallback(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*agent.Output){
		"started": func(out *agent.Output) { out.Started = func(agent.Start) { panic("mine") } },
		"events":  func(out *agent.Output) { out.Events = func(*agent.Event) error { panic("mine") } },
		"stderr":  func(out *agent.Output) { out.Stderr = panicWriter{} },
		"text":    func(out *agent.Output) { out.Text = panicWriter{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			req := b.request("stderr hi", "say text:hi", "hang")
			var out agent.Output
			set(&out)
			defer func() {
				if value := recover(); value != "mine" {
					t.Errorf("recovered %v, want the callback's panic", value)
				}
				tmp, _ := agent.LookupEnv(b.Environ, "TMPDIR")
				if entries, _ := os.ReadDir(tmp); len(entries) != 0 {
					t.Errorf("left behind: %v", entries)
				}
			}()
			_, err := b.Run(t.Context(), req, out)
			t.Errorf("Run = %v, want a panic", err)
		})
	}
}

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("mine") }

func TestRunCallbackEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say text:hi", "say ok:", "hang")
	out := agent.Output{Events: func(*agent.Event) error { runtime.Goexit(); return nil }}
	if _, err := b.Run(t.Context(), req, out); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("Run = %v, want the run stopped", err)
	}
}

func TestRunCallsBackIntoTheRunner(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	var inner agent.Result
	req := b.request("say text:outer", "say ok:")
	var out agent.Output
	out.Events = func(e *agent.Event) (err error) {
		if e.Kind == agent.KindText {
			inner, err = b.Run(t.Context(), b.request("say text:inner", "say ok:"), agent.Output{})
		}
		return err
	}
	if result, err := b.Run(t.Context(), req, out); err != nil || result.Text != "outer" || inner.Text != "inner" {
		t.Errorf("Run = %q within %q, %v", inner.Text, result.Text, err)
	}
}
