package streamjson_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestHostileAgentFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	visit := sessiontest.Visit{
		Engine:  func() engine.Engine { return newEngine() },
		Options: session.Options{ApprovalTimeout: -1}, // declines
		Calls: []func(context.Context, *session.Session) error{
			func(ctx context.Context, s *session.Session) error { return s.SetModel(ctx, "m") },
			func(ctx context.Context, s *session.Session) error { return s.SetAccess(ctx, agent.AccessWrite) },
			func(ctx context.Context, s *session.Session) error { return s.Interrupt(ctx) },
		},
	}
	for name, steps := range map[string][]sessiontest.Step{
		"permission": transcript(t, "perm-deny"),
		"interrupt":  transcript(t, "interrupt"),
		"settings":   without(transcript(t, "set-model-mode")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			visit.Faults(t, steps)
		})
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sessiontest.Log{}
		s, _ := plays(t, session.Options{Events: l.Event}, expect(userLine), sessiontest.LongLine(20<<20), say(one), say(result))
		r, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || r.Text != "one" {
			t.Errorf("%+v, %v", r, err)
		}
		if len(l.Lines()) != 3 || !strings.Contains(l.Lines()[0], `"kind":"raw"`) || !strings.Contains(l.Lines()[0], `"truncated":true`) || len(l.Lines()[0]) > 1<<20 {
			t.Errorf("%d events, the first of %d bytes", len(l.Lines()), len(l.Lines()[0]))
		}
	})
}
