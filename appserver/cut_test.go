package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// maxLine is what these tests take for a long line, in bytes.
const maxLine = 2000

// long completes the head of a line, which ends in a text, so that it is too long.
func long(head, tail string) sessiontest.Step {
	return sessiontest.Step{Kind: sessiontest.Write, Line: head + strings.Repeat("x", maxLine) + tail + "\n"}
}

// playsShort opens a session whose engine finds lines long soon.
func playsShort(t *testing.T, o session.Options, start engine.Start, steps ...sessiontest.Step) (*session.Session, *sessiontest.Peer, error) {
	t.Helper()
	peer := sessiontest.Start(steps)
	e := &appserver.Engine{}
	e.SetMaxLine(maxLine)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := session.Open(ctx, "test", e, peer, peer.Transport(), start, o)
	if err == nil {
		t.Cleanup(func() { s.Stop(context.Background(), "") })
	}
	return s, peer, err
}

// TestUnreadableTurnEnds proves that a turn whose end is too long, or cut, ends
// all the same, and as a success only where the line says so.
func TestUnreadableTurnEnds(t *testing.T) {
	t.Parallel()
	const ended = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"1",`
	const unknown = "test: how the turn has ended cannot be read"
	for name, test := range map[string]struct {
		steps []sessiontest.Step
		text  string // how it begins
		cut   bool
		err   string // how it begins, empty for a success
	}{
		"long success":         {[]sessiontest.Step{say(text1), long(ended+`"status":"completed","items":["`, `"]}}}`)}, "one", false, ""},
		"long failure":         {[]sessiontest.Step{long(ended+`"status":"failed","error":{"message":"no"},"items":["`, `"]}}}`)}, "", false, "test: no"},
		"long interruption":    {[]sessiontest.Step{long(ended+`"status":"interrupted","items":["`, `"]}}}`)}, "", false, "test: the turn was interrupted"},
		"long, status unknown": {[]sessiontest.Step{say(text1), long(ended+`"items":["`, `"],"status":"completed"}}}`)}, "one", false, unknown + ": the line with it has 2"},
		"cut success":          {[]sessiontest.Step{say(text1), say(ended + `"status":"completed","it`)}, "one", false, ""},
		"cut, status unknown":  {[]sessiontest.Step{say(text1), say(ended + `"items":[{"ty`)}, "one", false, unknown},
		"a long answer":        {[]sessiontest.Step{long(`{"method":"item/completed","params":{"threadId":"t","turnId":"1","item":{"type":"agentMessage","id":"a","text":"`, `"}}}`), say(ended1)}, "xx", true, ""},
		"of another turn":      {[]sessiontest.Step{long(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"0","status":"completed","items":["`, `"]}}}`), say(text1), say(ended1)}, "one", false, ""},
		"of another thread":    {[]sessiontest.Step{long(`{"method":"turn/completed","params":{"threadId":"u","turn":{"id":"1","status":"completed","items":["`, `"]}}}`), say(text1), say(ended1)}, "one", false, ""},
		"long start":           {[]sessiontest.Step{long(`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"1","items":["`, `"]}}}`), say(text1), say(ended1)}, "one", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _, err := playsShort(t, session.Options{}, engine.Start{}, append(append(handshake(), expect(startTurn), say(turn1)), test.steps...)...)
				if err != nil {
					t.Fatal(err)
				}
				turn := s.Send(session.Message{Text: "go"})
				synctest.Wait()
				select {
				case <-turn.Done():
				default:
					t.Fatal("the turn has not ended")
				}
				r, err := turn.Wait(t.Context())
				if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("%.100v", err)
				}
				if !strings.HasPrefix(r.Text, test.text) || test.text == "" && r.Text != "" || r.TextTruncated != test.cut {
					t.Errorf("%.100q, %v", r.Text, r.TextTruncated)
				}
			})
		})
	}
}

// TestUnreadableAnswers checks that a call does not wait for an answer that arrived
// truncated, and that the readable start of the line counts.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	resume := []sessiontest.Step{handshake()[0], handshake()[1], handshake()[2], expect(`{"id":2,"method":"thread/resume"}`)}
	for name, test := range map[string]struct {
		answer sessiontest.Step
		err    string // empty: the session is open
	}{
		"with the ID":    {long(`{"id":2,"result":{"thread":{"id":"t","turns":["`, `"]}}}`), ""},
		"without the ID": {long(`{"id":2,"result":{"thread":{"turns":["`, `"],"id":"t"}}}`), "test: the session cannot be opened: thread/resume: the answer names no thread"},
		"of no shape":    {long(`{"id":2,"longer":"`, `","result":{"thread":{"id":"t"}}}`), "test: the session cannot be opened: thread/resume: the agent's answer cannot be read"},
		"cut":            {say(`{"id":2,"result":{"thread":{"id":"t","tur`), ""},
		"error":          {long(`{"id":2,"error":{"code":7,"message":"no","data":"`, `"}}`), "test: the session cannot be opened: thread/resume: no (7)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _, err := playsShort(t, session.Options{}, engine.Start{Resume: "t"}, append(resume[:4:4], test.answer, expect(startTurn), long(`{"id":3,"result":{"turn":{"id":"1","items":["`, `"]}}}`), say(text1), say(ended1))...)
				if fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
					t.Errorf("%v", err)
				}
				if err != nil {
					return
				}
				if r, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil || r.Text != "one" || r.SessionID != "t" {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
	}
}

// TestCallsReturnWhatIsWhole: their results have no mark.
func TestCallsReturnWhatIsWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start([]sessiontest.Step{expect(`{"id":1,"method":"list"}`), long(`{"id":1,"result":{"data":["`, `"]}}`)})
		heads := 0
		client := appserver.ConnectWith(peer.Transport(), appserver.Callbacks{Unknown: func(_ []byte, truncated bool, size int64) {
			if truncated && size > maxLine {
				heads++
			}
		}}, maxLine)
		if _, err := client.Call(t.Context(), "list", json.RawMessage(`{}`)); err == nil || err.Error() != "list: the agent's answer cannot be read" || heads != 1 {
			t.Errorf("%v, %d heads", err, heads)
		}
		if err := client.Close(); err != nil || client.Err() != nil {
			t.Error(err, client.Err())
		}
		<-peer.Done()
	})
}

// TestUnreadableApprovalRequests checks that the client declines a request that it
// cannot read: the server waits for an answer.
func TestUnreadableApprovalRequests(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"t","command":"`: `{"id":0,"result":{"decision":"decline"}}`,
		`{"method":"item/fileChange/requestApproval","id":0,"params":{"threadId":"t","reason":"`:        `{"id":0,"result":{"decision":"decline"}}`,
		`{"method":"item/tool/requestUserInput","id":0,"params":{"questions":"`:                         `{"id":0,"result":{"answers":{}}}`,
		`{"method":"item/tool/call","id":0,"params":{"text":"`:                                          `{"id":0,"error":{"code":-32601,"message":"not supported by this client: item/tool/call"}}`,
	} {
		for _, step := range []sessiontest.Step{say(request), long(request, `"}}`)} {
			synctest.Test(t, func(t *testing.T) {
				o := session.Options{Events: func(e *agent.Event) error {
					if e.Kind == agent.KindApproval {
						t.Errorf("it asks %.100q", e.Tool.Input)
					}
					return nil
				}}
				s, peer, err := playsShort(t, o, engine.Start{}, append(handshake(), expect(startTurn), say(turn1), step, expect(want), say(ended1))...)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil && !errors.Is(err, agent.ErrAgent) {
					t.Error(err)
				}
				if sent := peer.Sent(); sent[len(sent)-1] != want {
					t.Errorf("answered %s", sent[len(sent)-1])
				}
			})
		}
	}
}
