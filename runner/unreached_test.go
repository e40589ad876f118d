package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// An agent that repeats its model requests without an answer is reported once, while it
// runs, whether it reports them in an event, on standard error or not at all.
func TestUnreachedModelIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []string
		want   string
	}{
		"events":          {[]string{"say session:1 m", "say retry:", "say beat:", "say retry:", "hang"}, "alpha gets no answer from its model (retrying); it keeps trying until the time limit of 1h0m0s"},
		"standard error":  {[]string{"say session:1 m", "stderr noise", "stderr trying again: no route to sk-very-secret", "hang"}, "alpha gets no answer from its model (trying again: no route to ***); it keeps trying until the time limit of 1h0m0s"},
		"no answer":       {[]string{"say session:1 m", "say beat:", "hang"}, "alpha has had no answer from its model for 50ms; check the network or the provider, or wait"},
		"after an answer": {[]string{"say retry:", "say text:hi", "say retry:", "hang"}, "alpha gets no answer from its model (retrying); it keeps trying until the time limit of 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			b.SetUnreached(50 * time.Millisecond)
			if name == "no answer" {
				b.SetUnanswered(50 * time.Millisecond)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.Warn = func(string) { cancel() }
			result, err := b.Run(ctx, b.request(c.script...), agent.Output{})
			if !errors.Is(err, agent.ErrCanceled) || len(result.Warnings) != 1 || result.Warnings[0] != c.want {
				t.Errorf("%v, warnings %q, want %q", err, result.Warnings, c.want)
			}
		})
	}
}

// The error of a timeout says that the model has not answered.
func TestTimeoutReportsAnUnansweredModel(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say session:1 m", "say beat:", "hang")
	req.Timeout = 100 * time.Millisecond
	_, err := b.Run(t.Context(), req, agent.Output{})
	if want := "no result within 100ms; the agent was ended; no answer came from the model"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// interruptedEngine interrupts a turn with a message that the agent answers.
type interruptedEngine struct{ lineEngine }

func (e *interruptedEngine) Interrupt(ctx context.Context) error { return e.Send(ctx, "interrupted") }

// The same holds for each turn of a session, and its record has the warnings.
func TestUnreachedModelIsReportedInATurn(t *testing.T) {
	t.Parallel()
	for message, reason := range map[string]string{
		"retry":  "retrying",
		"stderr": "trying again: no route to ***",
		"silent": "",
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			b.SetUnreached(time.Millisecond)
			if message == "silent" {
				b.SetUnanswered(time.Millisecond)
			}
			r := &recorder{}
			b.Recorder = r
			warned := make(chan string, 10)
			b.Warn = func(line string) { warned <- line }
			rt, _, err := b.Registry.ParseToken("talker")
			if err != nil {
				t.Fatal(err)
			}
			held := *rt.Session
			held.Engine = func(registry.Invocation) engine.Engine { return new(interruptedEngine) }
			rt.ID, rt.Session = "retrier", &held
			if err := b.Registry.Register(rt); err != nil {
				t.Fatal(err)
			}
			req := b.sessionRequest("say session:1 m", "converse")
			req.Runtime = "retrier"
			s, err := b.StartSession(t.Context(), req, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := "retrier gets no answer from its model (" + reason + "); it keeps trying until the turn is interrupted"
			if message == "silent" {
				want = "retrier has had no answer from its model for 1ms; check the network or the provider, or wait"
			}
			for range 2 {
				turn := s.Send(session.Message{Text: message})
				if got := <-warned; got != want {
					t.Errorf("warning %q, want %q", got, want)
				}
				if err := s.Interrupt(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := turn.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			}
			s.Stop(t.Context(), "")
			if close(warned); len(warned) > 0 || !slices.Equal(r.result.Warnings, []string{want, want}) {
				t.Errorf("%d more warnings, recorded %q", len(warned), r.result.Warnings)
			}
		})
	}
}
