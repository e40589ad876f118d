package sessiontest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// late are the lines of an agent that accepts a message, is interrupted before it has
// begun the turn, and begins it later.
type late struct {
	accepted []sessiontest.Step // with the first interrupt, which ends nothing
	begun    []sessiontest.Step
	again    []sessiontest.Step // the second interrupt
	ended    []sessiontest.Step
	next     []sessiontest.Step // a whole turn that answers "two"
	requests int                // to interrupt
}

func lateTurns() map[string]late {
	languages := dialects()
	second := languages["streamjson"].turn(1, "two")
	return map[string]late{
		"appserver": {
			accepted: []sessiontest.Step{
				expect(`{"id":3,"method":"turn/start"}`), say(`{"id":3,"result":{"turn":{"id":"0"}}}`),
				expect(`{"id":10,"method":"turn/interrupt"}`), say(`{"id":10,"error":{"code":-32600,"message":"no active turn to interrupt"}}`),
			},
			begun:    []sessiontest.Step{say(`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"0"}}}`)},
			again:    []sessiontest.Step{expect(`{"id":11,"method":"turn/interrupt"}`), say(`{"id":11,"result":{}}`)},
			ended:    []sessiontest.Step{say(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"0","status":"interrupted"}}}`)},
			next:     languages["appserver"].turn(1, "two"),
			requests: 2,
		},
		"streamjson": {
			accepted: []sessiontest.Step{
				expect(`{"type":"user","uuid":"first"}`), say(`{"type":"command_lifecycle","command_uuid":"first","state":"queued"}`),
				expect(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`),
				say(`{"type":"control_response","response":{"subtype":"success","request_id":"i","response":{"still_queued":["first"]}}}`),
			},
			begun: []sessiontest.Step{say(`{"type":"command_lifecycle","command_uuid":"first","state":"started"}`)},
			again: []sessiontest.Step{
				expect(`{"type":"control_request","request_id":"j","request":{"subtype":"interrupt"}}`),
				say(`{"type":"control_response","response":{"subtype":"success","request_id":"j","response":{"still_queued":[]}}}`),
			},
			ended: []sessiontest.Step{say(`{"type":"result","subtype":"error_during_execution","is_error":true}`)},
			next: slices.Concat([]sessiontest.Step{
				expect(`{"type":"user","uuid":"second"}`), say(`{"type":"command_lifecycle","command_uuid":"second","state":"started"}`),
			}, second[1:]),
			requests: 2,
		},
		"acp": {
			accepted: []sessiontest.Step{expect(`{"id":3,"method":"session/prompt"}`), expect(`{"jsonrpc":"2.0","method":"session/cancel"}`)},
			ended:    []sessiontest.Step{say(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}`)},
			next:     languages["acp"].turn(1, "two"),
			requests: 1,
		},
	}
}

// TestInterruptBeforeTheTurnBegins interrupts a turn that the agent has accepted and not
// begun. The turn ends whenever it begins, the caller's time bounds the interrupt, and
// the next turn is not interrupted.
func TestInterruptBeforeTheTurnBegins(t *testing.T) {
	t.Parallel()
	languages := dialects()
	pause := []sessiontest.Step{{Kind: sessiontest.Pause, For: time.Minute}}
	for language, l := range lateTurns() {
		for name, test := range map[string]struct {
			steps    []sessiontest.Step
			limit    time.Duration
			err      error // of the interrupt
			requests int
		}{
			"late":            {slices.Concat(l.accepted, pause, l.begun, l.again, l.ended, l.next), time.Hour, nil, l.requests},
			"without a limit": {slices.Concat(l.accepted, pause, l.begun, l.again, l.ended, l.next), 0, nil, l.requests},
			"never":           {slices.Concat(l.accepted, pause, l.ended, l.next), time.Hour, nil, 1},
			"too late":        {slices.Concat(l.accepted, pause, l.begun, l.ended, l.next), time.Second, context.DeadlineExceeded, 1},
		} {
			if language == "streamjson" && name == "never" {
				continue // a result belongs to the message that was begun last
			}
			ends := agent.ErrCanceled
			switch {
			case language == "acp":
				test.err = nil // the agent does not answer an interrupt
			case language == "streamjson" && test.err != nil:
				ends = agent.ErrAgent // the interrupt was given up, and the agent does not say why the turn failed
			}
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					peer := sessiontest.Start(slices.Concat(languages[language].greeting, test.steps))
					s, err := session.Open(t.Context(), "test", languages[language].engine(), peer, peer.Transport(), engine.Start{Workdir: "/work"}, session.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Stop(context.Background(), "")
					ctx := t.Context()
					if test.limit > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, test.limit)
						defer cancel()
					}
					turn := s.Send(session.Message{Text: "go"})
					<-turn.Delivered()
					next := s.Send(session.Message{Text: "and now?"})
					if err := s.Interrupt(ctx); !errors.Is(err, test.err) {
						t.Errorf("the interrupt returned %v, want %v", err, test.err)
					}
					hang, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					if _, err := turn.Wait(hang); !errors.Is(err, ends) {
						t.Errorf("the turn ended with %v", err)
					}
					if r, err := next.Wait(hang); err != nil || r.Text != "two" {
						t.Errorf("the next turn ended with %q, %v", r.Text, err)
					}
					requests := 0
					for _, line := range peer.Sent() {
						if strings.Contains(line, "turn/interrupt") || strings.Contains(line, `"interrupt"`) || strings.Contains(line, "session/cancel") {
							requests++
						}
					}
					if requests != test.requests {
						t.Errorf("%d interrupts, want %d", requests, test.requests)
					}
				})
			})
		}
	}
}
