package appserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

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

func TestHostileAgentFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	visit := sessiontest.Visit{
		Engine: func() engine.Engine { return &appserver.Engine{} },
		Options: session.Options{
			Approve: func(context.Context, session.Approval) engine.Decision { return engine.Accept },
		},
	}
	interrupting := visit
	interrupting.Calls = []func(context.Context, *session.Session) error{
		func(ctx context.Context, s *session.Session) error { return s.Interrupt(ctx) },
	}
	for name, test := range map[string]struct {
		visit sessiontest.Visit
		steps []sessiontest.Step
		want  string // how the end of the first message ends
	}{
		"approval":  {visit, essence(transcript(t, "approval-cmd-accept")), "<nil>"},
		"steer":     {visit, essence(transcript(t, "steer", `"nope"`, `"late"`)), "<nil>"},
		"interrupt": {interrupting, essence(transcript(t, "interrupt")), "test: the turn was interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if outcomes := test.visit.Faults(t, test.steps); !strings.HasSuffix(outcomes[0], test.want) {
				t.Errorf("without a fault it ends with %q", outcomes)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sessiontest.Log{}
		s, _ := plays(t, session.Options{Events: l.Event}, expect(startTurn), say(turn1), sessiontest.LongLine(20<<20), say(text1), say(ended1))
		result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || result.Text != "one" {
			t.Errorf("%+v, %v", result, err)
		}
		if len(l.Lines()) != 3 || !strings.Contains(l.Lines()[0], `"kind":"raw"`) || !strings.Contains(l.Lines()[0], `"truncated":true`) || len(l.Lines()[0]) > 1<<20 {
			t.Errorf("%d events, the first of %d bytes", len(l.Lines()), len(l.Lines()[0]))
		}
	})
}
