package streamjson_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// visit is a user who says two things, steers, declines everything, changes the
// model, interrupts, and leaves. It returns how each message ended. That nothing
// hangs and no goroutine stays is checked by the bubble it runs in.
func visit(t *testing.T, steps []sessiontest.Step) (outcomes []string) {
	t.Helper()
	peer := sessiontest.Start(steps)
	opening, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := session.Open(opening, "test", engine(), peer, peer.Transport(), session.Start{}, session.Options{ApprovalTimeout: -1})
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	const timeout = 10 * time.Minute
	turns := []*session.Turn{s.Send(session.Message{Text: "one", Timeout: timeout}), s.Send(session.Message{Text: "two", Timeout: timeout})}
	synctest.Wait()
	turns = append(turns, s.Steer(t.Context(), session.Message{Text: "steered", Timeout: timeout}))
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { return s.SetModel(ctx, "m") },
		func(ctx context.Context) error { return s.SetAccess(ctx, agent.AccessWrite) },
		s.Interrupt,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		synctest.Wait()
		_ = call(ctx) // the agent may say anything to that
	}
	time.Sleep(timeout + time.Minute)
	s.Stop(t.Context(), "enough")
	for i, turn := range turns {
		select {
		case <-turn.Done():
		default:
			t.Errorf("message %d has no outcome", i)
			continue
		}
		result, err := turn.Wait(t.Context())
		outcomes = append(outcomes, fmt.Sprintf("%q %v", result.Text, err))
	}
	if s.State() != session.StateStopped || len(s.Approvals()) > 0 {
		t.Errorf("%s, %v", s.State(), s.Approvals())
	}
	return outcomes
}

// harmless are the faults that change nothing of what becomes of the messages.
var harmless = []string{"says what nobody knows", "says what is malformed"}

func TestFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]sessiontest.Step{
		"permission": transcript(t, "perm-deny"),
		"interrupt":  transcript(t, "interrupt"),
		"settings":   without(transcript(t, "set-model-mode")),
	} {
		for _, fault := range sessiontest.Faults() {
			t.Run(name+" "+fault.Name, func(t *testing.T) {
				t.Parallel()
				var faultless []string
				synctest.Test(t, func(t *testing.T) { faultless = visit(t, steps) })
				for i := range steps {
					synctest.Test(t, func(t *testing.T) {
						got := visit(t, fault.Apply(steps, i))
						if slices.Contains(harmless, fault.Name) && !slices.Equal(got, faultless) {
							t.Errorf("at step %d: %q, without it %q", i, got, faultless)
						}
					})
					if t.Failed() {
						t.Fatalf("at step %d: %.300s", i, steps[i].Line)
					}
				}
			})
		}
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		s, _ := plays(t, session.Options{Events: l.event}, expect(userLine), sessiontest.LongLine(20<<20), say(one), say(result))
		r, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || r.Text != "one" {
			t.Errorf("%+v, %v", r, err)
		}
		if len(l.lines) != 3 || !strings.Contains(l.lines[0], `"kind":"raw"`) || !strings.Contains(l.lines[0], `"truncated":true`) || len(l.lines[0]) > 1<<20 {
			t.Errorf("%d events, the first of %d bytes", len(l.lines), len(l.lines[0]))
		}
	})
}
