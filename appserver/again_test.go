package appserver_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// TestItemsThatComeAgain reports an item of a turn once.
func TestItemsThatComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		item := func(method, rest string) sessiontest.Step {
			return say(`{"method":"item/` + method + `","params":{"threadId":"t","turnId":"1","item":{` + rest + `}}}`)
		}
		message := item("completed", `"id":"m","type":"agentMessage","text":"said"`)
		called := item("started", `"id":"c","type":"commandExecution","command":"ls"`)
		ran := item("completed", `"id":"c","type":"commandExecution","command":"ls","aggregatedOutput":"x","exitCode":0`)
		patched := item("completed", `"id":"f","type":"fileChange","status":"completed","changes":[{"path":"/a","kind":{"type":"add"},"diff":""}]`)
		streamed := item("completed", `"id":"a","type":"agentMessage","text":"one"`)
		var kinds []string
		s, _ := plays(t, session.Options{Events: func(e *agent.Event) error {
			if e.Kind != agent.KindHeartbeat {
				kinds = append(kinds, string(e.Kind)+e.Text)
			}
			return nil
		}}, expect(startTurn), say(turn1), say(begun1), message, message, called, called, ran, ran, called, patched, patched,
			say(text1), streamed, say(text1), streamed, say(ended1))
		result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || result.Text != "one" {
			t.Errorf("%+v, %v", result, err)
		}
		if got, want := strings.Join(kinds, " "), "textsaid tool_call tool_result file_change textone result"; !strings.HasSuffix(got, want) || strings.Count(got, "tool_call") != 1 {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}
