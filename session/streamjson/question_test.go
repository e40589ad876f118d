package streamjson_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/streamjson"
)

// question is a tool call that asks the user, as Claude Code sends it.
const question = `{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","display_name":"Ask","input":{"questions":[{"question":"Which way?","header":"Way","options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}],"multiSelect":false}]},"tool_use_id":"u1","requires_user_interaction":true}}`

// asking returns an engine whose agent can ask the user.
func asking(t *testing.T) *streamjson.Engine {
	t.Helper()
	e, ok := claude.Runtime().Session.Engine(registry.Invocation{}).(*streamjson.Engine)
	if !ok {
		t.Fatal("another engine")
	}
	return e
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	const begin = `{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":`
	answer := func(answers ...string) func(context.Context, *session.Session) error {
		return func(ctx context.Context, s *session.Session) error {
			return s.AnswerQuestions(ctx, "1", [][]string{answers})
		}
	}
	decide := func(d engine.Decision) func(context.Context, *session.Session) error {
		return func(ctx context.Context, s *session.Session) error { return s.Answer(ctx, "1", d) }
	}
	for name, test := range map[string]struct {
		act  func(ctx context.Context, s *session.Session) error
		want string
	}{
		"an option":  {answer("left"), `"answers":{"Which way?":"left"}`},
		"other text": {answer("straight on"), `"answers":{"Which way?":"straight on"}`},
		"decline":    {decide(engine.Decline), begin + `{"behavior":"deny","message":"The user does not answer. Decide yourself, or end your turn with the question."}}}`},
		"cancel":     {decide(engine.Cancel), begin + `{"behavior":"deny","message":"The user wants the turn to end.","interrupt":true}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var events []agent.Event
				o := session.Options{Events: func(e *agent.Event) error { events = append(events, *e.Clone()); return nil }}
				s, peer := playsTo(t, asking(t), o, expect(userLine), say(question), expect(begin+`{}}}`), say(result))
				turn := s.Send(session.Message{Text: "go"})
				synctest.Wait()
				i := slices.IndexFunc(events, func(e agent.Event) bool { return e.Kind == agent.KindQuestion })
				if i < 0 || events[i].ApprovalID != "1" || events[i].Questions[0].Options[1].Description != "longer" {
					t.Fatalf("%+v", events)
				}
				if err := test.act(t.Context(), s); err != nil {
					t.Error(err)
				}
				<-turn.Done()
				got := last(peer.Sent())
				if !strings.Contains(got, test.want) || strings.Contains(test.want, "answers") && !strings.Contains(got, `"behavior":"allow"`) || !json.Valid([]byte(got)) {
					t.Errorf("answered %s", got)
				}
			})
		})
	}
}

// A question is neither accepted by the access of the session nor as an approval request.
func TestQuestionsAreNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := session.Options{
			ApprovalTimeout: time.Minute,
			Approve:         func(context.Context, session.Approval) engine.Decision { return engine.AcceptForSession },
		}
		s, peer := playsTo(t, asking(t), o, expect(userLine), say(question), expect(`{"type":"control_response","response":{"request_id":"q1"}}`), say(result))
		turn := s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if err := s.Answer(t.Context(), "1", engine.Accept); !errors.Is(err, agent.ErrUsage) {
			t.Error(err)
		}
		<-turn.Done()
		if got := last(peer.Sent()); !strings.Contains(got, `"deny"`) {
			t.Errorf("answered %s", got)
		}
	})
}
