package appserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// visit is a user who says two things, steers, accepts everything, waits for
// minutes and leaves. It returns how each message ended. That nothing hangs and
// no goroutine stays is checked by the bubble it runs in.
func visit(t *testing.T, steps []sessiontest.Step) (outcomes []string) {
	t.Helper()
	peer := sessiontest.Start(steps)
	opening, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := session.Open(opening, "test", &appserver.Engine{}, peer, peer.Transport(), session.Start{}, session.Options{
		Approve: func(context.Context, session.Approval) session.Decision { return session.Accept },
	})
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	const timeout = 10 * time.Minute
	turns := []*session.Turn{s.Send(session.Message{Text: "one", Timeout: timeout}), s.Send(session.Message{Text: "two", Timeout: timeout})}
	synctest.Wait()
	steering, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	turns = append(turns, s.Steer(steering, session.Message{Text: "steered", Timeout: timeout}))
	time.Sleep(timeout + time.Minute)
	interrupting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	synctest.Wait()
	_ = s.Interrupt(interrupting) // the server may say anything to that
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

// essence returns the steps up to the end of the first turn, without those that
// are like many others.
func essence(steps []sessiontest.Step) []sessiontest.Step {
	var kept []sessiontest.Step
	deltas := 0
	for _, s := range steps {
		switch {
		case strings.Contains(s.Line, `"thread/st`) && s.Kind == sessiontest.Say,
			strings.Contains(s.Line, `"account/`), strings.Contains(s.Line, `"configWarning"`), strings.Contains(s.Line, `"remoteControl/`):
			continue
		case strings.Contains(s.Line, `/delta"`):
			if deltas++; deltas > 3 {
				continue
			}
		}
		kept = append(kept, s)
		if strings.Contains(s.Line, `"turn/completed"`) {
			break
		}
	}
	return kept
}

// harmless are the faults that change nothing of what becomes of the messages.
var harmless = []string{"says what nobody knows", "says what is malformed"}

func TestFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]sessiontest.Step{
		"approval": essence(transcript(t, "approval-cmd-accept")),
		"steer":    essence(transcript(t, "steer", `"nope"`, `"late"`)),
	} {
		for _, fault := range sessiontest.Faults() {
			t.Run(name+" "+fault.Name, func(t *testing.T) {
				t.Parallel()
				var without []string
				synctest.Test(t, func(t *testing.T) { without = visit(t, steps) })
				if !strings.HasSuffix(without[0], "<nil>") {
					t.Fatalf("without it %q", without)
				}
				for i := range steps {
					synctest.Test(t, func(t *testing.T) {
						got := visit(t, fault.Apply(steps, i))
						if slices.Contains(harmless, fault.Name) && !slices.Equal(got, without) {
							t.Errorf("at step %d: %q, without it %q", i, got, without)
						}
					})
					if t.Failed() {
						t.Fatalf("at step %d: %s", i, steps[i].Line)
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
		s, _ := plays(t, session.Options{Events: l.event}, expect(startTurn), say(turn1), sessiontest.LongLine(20<<20), say(text1), say(ended1))
		result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || result.Text != "one" {
			t.Errorf("%+v, %v", result, err)
		}
		if len(l.lines) != 3 || !strings.Contains(l.lines[0], `"kind":"raw"`) || !strings.Contains(l.lines[0], `"truncated":true`) || len(l.lines[0]) > 1<<20 {
			t.Errorf("%d events, the first of %d bytes", len(l.lines), len(l.lines[0]))
		}
	})
}
