package sessiontest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// A Visit is a user who talks to an agent that goes wrong: two messages, one that
// steers, the Calls, a long wait, an interrupt, another wait, and the end.
type Visit struct {
	// Engine makes the engine. Required.
	Engine  func() engine.Engine
	Start   engine.Start
	Options session.Options

	// Calls are made while the first message is answered, each for at most a
	// minute. Their errors are ignored.
	Calls []func(ctx context.Context, s *session.Session) error

	// Harmless reports whether a fault at a step must not change the outcome
	// of the messages. Nil means Fault.Harmless.
	Harmless func(f Fault, at Step) bool
}

// patience is longer than any message of a visit waits.
const patience = 11 * time.Minute

// play plays a script to the user, inside a bubble of package testing/synctest,
// and returns how each message ended. It fails t if a message or the session does
// not end. The bubble detects hangs and leaked goroutines.
func (v Visit) play(t testing.TB, steps []Step) (outcomes []string) {
	t.Helper()
	peer := Start(steps)
	opening, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	s, err := session.Open(opening, "test", v.Engine(), peer, peer.Transport(), v.Start, v.Options)
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	brief := func(call func(ctx context.Context, s *session.Session) error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		synctest.Wait()
		_ = call(ctx, s) // the agent may say anything to that
	}
	message := func(text string) session.Message { return session.Message{Text: text, Timeout: patience - time.Minute} }
	turns := []*session.Turn{s.Send(message("one")), s.Send(message("two"))}
	brief(func(ctx context.Context, s *session.Session) error {
		turns = append(turns, s.Steer(ctx, message("steered")))
		return nil
	})
	for _, call := range v.Calls {
		brief(call)
	}
	time.Sleep(patience)
	brief(func(ctx context.Context, s *session.Session) error { return s.Interrupt(ctx) })
	time.Sleep(patience)
	s.Stop(context.Background(), "enough")
	for i, turn := range turns {
		select {
		case <-turn.Done():
			result, err := turn.Wait(context.Background())
			outcomes = append(outcomes, fmt.Sprintf("%q %v", result.Text, err))
		default:
			t.Errorf("message %d has no outcome", i)
		}
	}
	if s.State() != session.StateStopped || len(s.Approvals()) > 0 {
		t.Errorf("when it is over the session is %s, with approval requests %v", s.State(), s.Approvals())
	}
	return outcomes
}

// Faults plays a script with each fault at each of its steps, each in a separate
// bubble. It fails the test if a message has no outcome, something hangs or
// leaks, or a harmless fault changes the outcome of the messages. It returns the
// outcomes without any fault.
func (v Visit) Faults(t *testing.T, steps []Step) (faultless []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { faultless = v.play(t, steps) })
	for _, fault := range Faults() {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			for i, step := range steps {
				harmless := fault.Harmless
				if v.Harmless != nil {
					harmless = v.Harmless(fault, step)
				}
				synctest.Test(t, func(t *testing.T) { // which ends this test when it fails
					defer func() {
						if t.Failed() {
							t.Logf("at step %d: %.300s", i, step.Line)
						}
					}()
					if got := v.play(t, fault.Apply(steps, i)); harmless && !slices.Equal(got, faultless) {
						t.Errorf("it ends with %q, without the fault with %q", got, faultless)
					}
				})
			}
		})
	}
	return faultless
}
