package streamjson_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
	"github.com/busdk/bus-agent/session/streamjson"
)

// maxLine is what these tests take for a long line, in bytes.
const maxLine = 2000

// short returns an engine to which lines are soon too long.
func short() *streamjson.Engine {
	e := newEngine()
	e.SetMaxLine(maxLine)
	return e
}

// TestUnreadableTurnEnds proves that a turn whose last line is too long, or cut,
// ends all the same, and as a success only where the line says so.
func TestUnreadableTurnEnds(t *testing.T) {
	t.Parallel()
	const good, bad, unknown = `{"type":"result","subtype":"success","is_error":false,"result":"x`, `{"type":"result","subtype":"success","is_error":true,"result":"x`, `{"type":"result","subtype":"success","result":"x`
	long := func(head string) sessiontest.Step {
		return say(head + strings.Repeat("x", maxLine) + `"}`)
	}
	for name, test := range map[string]struct {
		steps     []sessiontest.Step
		text      string // how it begins
		truncated bool
		err       string // how it begins, empty for a success
	}{
		"long":                     {[]sessiontest.Step{long(good)}, "xx", true, ""},
		"long after the answer":    {[]sessiontest.Step{say(one), long(good)}, "one", false, ""},
		"long failure":             {[]sessiontest.Step{long(bad)}, "", false, "test: xx"},
		"long, status unknown":     {[]sessiontest.Step{say(one), long(unknown)}, "one", false, "test: how the turn has ended cannot be read: the line with it has 20"},
		"cut":                      {[]sessiontest.Step{say(good)}, "x", true, ""},
		"cut failure":              {[]sessiontest.Step{say(bad)}, "", false, "test: x"},
		"cut, status unknown":      {[]sessiontest.Step{say(unknown)}, "", false, "test: how the turn has ended cannot be read"},
		"cut in the middle":        {[]sessiontest.Step{say(one), say(`{"type":"result","subtype":"success","is_error":false,"num_tu`)}, "one", false, ""},
		"a long answer before it":  {[]sessiontest.Step{say(one), long(`{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"x`), say(result)}, "xx", true, ""},
		"a cut line without type":  {[]sessiontest.Step{say(`{"type":"resu`), say(`{"type":`), say(`{"typ`), say(one), say(result)}, "one", false, ""},
		"a long line without type": {[]sessiontest.Step{say(strings.Repeat("x", maxLine+1)), say(one), say(result)}, "one", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := playsTo(t, short(), session.Options{}, append([]sessiontest.Step{expect(userLine)}, test.steps...)...)
				turn := s.Send(session.Message{Text: "go"})
				synctest.Wait()
				select {
				case <-turn.Done():
				default:
					t.Fatal("the turn has not ended")
				}
				r, err := turn.Wait(t.Context())
				if (err == nil) != (test.err == "") || err != nil && (!strings.HasPrefix(err.Error(), test.err) || !errors.Is(err, agent.ErrAgent)) {
					t.Errorf("%.100v", err)
				}
				if !strings.HasPrefix(r.Text, test.text) || test.text == "" && r.Text != "" || r.TextTruncated != test.truncated || len(r.Text) > maxLine {
					t.Errorf("%.100q, %v", r.Text, r.TextTruncated)
				}
			})
		})
	}
}

// TestUnreadableApprovalRequests checks that the engine declines a request that it
// cannot read: the agent waits for an answer.
func TestUnreadableApprovalRequests(t *testing.T) {
	t.Parallel()
	const head = `{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"x`
	const want = `{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{"behavior":"deny","message":"The approval request cannot be read."}}}`
	for name, line := range map[string]string{"cut": head, "long": head + strings.Repeat("x", maxLine) + `"}}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := session.Options{Events: func(e *agent.Event) error {
					if e.Kind == agent.KindApproval {
						t.Errorf("it asks %.100q", e.Tool.Input)
					}
					return nil
				}}
				s, peer := playsTo(t, short(), o, expect(userLine), say(line), expect(want), say(result))
				if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if got := last(peer.Sent()); got != want {
					t.Errorf("answered %s", got)
				}
			})
		})
	}
}

// TestEventsOfCutLines say what the head says, and that there was more.
func TestEventsOfCutLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []agent.Event
		o := session.Options{Events: func(e *agent.Event) error {
			if e.Truncated {
				events = append(events, *e.Clone())
			}
			return nil
		}}
		text := `{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"`
		long := text + strings.Repeat("y", maxLine) + `"}]}}`
		s, _ := playsTo(t, short(), o, expect(userLine), say(text+"x"), say(long), say(result))
		if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if len(events) != 2 || events[0].Text != "x" || events[0].Size != 0 || events[1].Kind != agent.KindText || events[1].Size != int64(len(long)) || events[1].Text[:2] != "yy" {
			t.Errorf("%d events: %.300v", len(events), events)
		}
	})
}
