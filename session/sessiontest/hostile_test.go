package sessiontest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// noise are lines that an agent may say in a turn without any effect on it.
func noise() map[string][]string {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	long := strings.Repeat("9", 5000)
	lines := map[string][]string{
		"a batch":                  {`[{"jsonrpc":"2.0","id":3,"result":{"stopReason":"refusal"}},{"jsonrpc":"2.0","method":"x"}]`},
		"deep nesting":             {`{"jsonrpc":"2.0","method":"session/update","params":` + deep + `}`, `{"type":"assistant","message":` + deep + `}`, deep},
		"deep ID":                  {`{"jsonrpc":"2.0","id":` + deep + `,"result":{}}`, `{"type":"control_response","response":{"request_id":` + deep + `}}`},
		"deep and cut":             {strings.Repeat(`{"a":`, 100_000)},
		"lone surrogates":          {`{"jsonrpc":"2.0","id":"\ud800","result":{}}`, `{"type":"control_request","request_id":"\udfff","request":{"subtype":"\ud800"}}`},
		"bytes that are not UTF-8": {"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\",\"params\":{}}", "\xff\xfe\x00{\x00}\x00", "{\"type\":\"\xc3\x28\"}"},
		"line breaks of others":    {"{\"method\":\"x\u0085y\u2028\"}\r", "\r\r\r", "{\"type\":\"x\"}\r{\"type\":\"result\",\"is_error\":true}"},
		"NUL":                      {"\x00", "{\"method\":\"\x00\"}", `{"method":"a\u0000b","id":"\u0000"}`},
		"a byte order mark":        {"\ufeff{\"type\":\"result\",\"is_error\":true}"},
		"other versions":           {`{"jsonrpc":"1.0","method":"session/update","params":{"sessionId":"s"}}`, `{"jsonrpc":7,"method":"x","id":1}`},
		"other sessions": {
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"other"}}}}`,
			`{"method":"turn/completed","params":{"threadId":"other","turn":{"id":"0","status":"failed"}}}`,
			`{"method":"turn/started","params":{"threadId":"other","turn":{"id":"9"}}}`,
		},
		"twice the member":     {`{"id":7,"id":8,"method":"a","method":"b","result":1,"result":2,"type":"x","type":"y"}`},
		"requests without end": nil,
	}
	for _, id := range []string{
		`1.5`, `3.5`, `3.0000000000000000000001`, `2.99999999999999999999`, `-3`, `-0`, `1e400`, `1e-400`, `1e99999999`, `18446744073709551617`,
		long, `0.` + long, `"3"`, `"1"`, `null`, `true`, `{}`, `[]`, `[3]`, `{"id":3}`, `""`, `"\u0000"`, `30e-1x`,
	} {
		lines["answers to "+id[:min(len(id), 30)]] = []string{
			`{"jsonrpc":"2.0","id":` + id + `,"result":{"stopReason":"refusal"}}`,
			`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"no"}}`,
			`{"jsonrpc":"2.0","id":` + id + `}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":` + id + `}}`,
			`{"type":"control_cancel_request","request_id":` + id + `}`,
			`{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":` + id + `}}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + id + `}}`,
		}
		lines["requests with "+id[:min(len(id), 30)]] = []string{
			`{"jsonrpc":"2.0","id":` + id + `,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`,
			`{"jsonrpc":"2.0","id":` + id + `,"method":"$/cancel_request","params":{"requestId":` + id + `}}`,
			`{"type":"control_request","request_id":` + id + `,"request":{"subtype":"hook_callback"}}`,
		}
	}
	for i := range 20_000 {
		lines["requests without end"] = append(lines["requests without end"],
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i), fmt.Sprintf(`{"type":"control_request","request_id":"%d","request":{"subtype":"x"}}`, i))
	}
	return lines
}

// TestHostileLines says noise in a turn of every engine. The turn ends as it would
// without it.
func TestHostileLines(t *testing.T) {
	t.Parallel()
	for language, d := range dialects() {
		for name, lines := range noise() {
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				steps := append([]sessiontest.Step{}, d.greeting...)
				turn := d.turn(0, "one")
				steps = append(steps, turn[:len(turn)-2]...)
				for _, line := range lines {
					steps = append(steps, say(line))
				}
				steps = append(steps, turn[len(turn)-2:]...)
				synctest.Test(t, func(t *testing.T) {
					s := opened(t, d, steps, session.Options{ApprovalTimeout: -1})
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					if r, err := s.Send(session.Message{Text: "go"}).Wait(ctx); err != nil || r.Text != "one" {
						t.Errorf("the turn ends with %q, %v", r.Text, err)
					}
				})
			})
		}
	}
}

// opened opens a session with an agent that plays steps.
func opened(t *testing.T, d dialect, steps []sessiontest.Step, o session.Options) *session.Session {
	t.Helper()
	peer := sessiontest.Start(steps)
	s, err := session.Open(t.Context(), "test", d.engine(), peer, peer.Transport(), engine.Start{Workdir: "/work"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background(), "") })
	return s
}

// asks are the lines of a request with an ID, in JSON, for a command.
func (d dialect) asks(id, command string) sessiontest.Step {
	line := strings.NewReplacer(`"q"`, id, `"id":0`, `"id":`+id).Replace(d.request)
	return say(strings.ReplaceAll(line, `"ls"`, fmt.Sprintf("%q", command)))
}

// accepted returns the answers by which the client accepts something.
func accepted(peer *sessiontest.Peer) (lines []string) {
	for _, line := range peer.Sent() {
		if strings.Contains(line, `"accept`) || strings.Contains(line, `allow`) || strings.Contains(line, `"optionId"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestApprovalRequestsAreAnsweredAsAsked has agents use the ID of a request again. An
// answer reaches the request that the user has seen, or none.
func TestApprovalRequestsAreAnsweredAsAsked(t *testing.T) {
	t.Parallel()
	withdrawn := map[string]string{
		"appserver":  `{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":7}}`,
		"streamjson": `{"type":"control_cancel_request","request_id":"7"}`,
		"acp":        `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
	}
	for language, d := range dialects() {
		id := "7"
		if language == "streamjson" {
			id = `"7"`
		}
		for name, test := range map[string]struct {
			steps    []sessiontest.Step // after the first request
			accepted int
		}{
			"once":                     {nil, 1},
			"changed while it is open": {[]sessiontest.Step{d.asks(id, "rm")}, 0},
			"said twice":               {[]sessiontest.Step{d.asks(id, "ls")}, 0},
			"withdrawn":                {[]sessiontest.Step{say(withdrawn[language])}, 0},
			"withdrawn and changed":    {[]sessiontest.Step{say(withdrawn[language]), {Kind: sessiontest.Pause, For: time.Second}, d.asks(id, "rm")}, 0},
		} {
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				turn := d.turn(0, "one")
				steps := append(append([]sessiontest.Step{}, d.greeting...), turn[:len(turn)-2]...)
				steps = append(append(steps, d.asks(id, "ls")), sessiontest.Step{Kind: sessiontest.Pause, For: time.Minute})
				steps = append(append(steps, test.steps...), sessiontest.Step{Kind: sessiontest.Pause, For: time.Minute})
				steps = append(steps, turn[len(turn)-2:]...)
				synctest.Test(t, func(t *testing.T) {
					peer := sessiontest.Start(steps)
					s, err := session.Open(t.Context(), "test", d.engine(), peer, peer.Transport(), engine.Start{Workdir: "/work"}, session.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Stop(context.Background(), "")
					sent := s.Send(session.Message{Text: "go"})
					time.Sleep(time.Second)
					open := s.Approvals()
					if len(open) != 1 || !strings.Contains(fmt.Sprintf("%s %s", open[0].Tool.Name, open[0].Tool.Input), "ls") {
						t.Fatalf("open is %+v", open)
					}
					time.Sleep(90 * time.Second)
					err = s.Answer(t.Context(), open[0].ID, engine.Accept)
					synctest.Wait()
					if got := accepted(peer); len(got) != test.accepted || (err == nil) != (test.accepted == 1) {
						t.Errorf("accepted is %q, %v", got, err)
					}
					for _, again := range s.Approvals() {
						if again.ID == open[0].ID {
							t.Errorf("a request has the ID of an earlier one: %+v", again)
						}
					}
					if _, err := sent.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestApprovalRequestsHaveIDsThatCanBeTyped has agents choose IDs that would be something
// else in a command line, a terminal or a list.
func TestApprovalRequestsHaveIDsThatCanBeTyped(t *testing.T) {
	t.Parallel()
	ids := []string{`""`, `"-h"`, `"--all"`, `"accept"`, `"\u001b[2J"`, `"a\nb"`, `"\u0000"`, `"\u202e"`, `"` + strings.Repeat("x", 1<<20) + `"`, `"\ud800"`}
	for language, d := range dialects() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			turn := d.turn(0, "one")
			steps := append(append([]sessiontest.Step{}, d.greeting...), turn[:len(turn)-2]...)
			for _, id := range ids {
				steps = append(steps, d.asks(id, "ls"))
			}
			steps = append(append(steps, sessiontest.Step{Kind: sessiontest.Pause, For: time.Minute}), turn[len(turn)-2:]...)
			synctest.Test(t, func(t *testing.T) {
				s := opened(t, d, steps, session.Options{})
				s.Send(session.Message{Text: "go"})
				time.Sleep(time.Second)
				if open := s.Approvals(); len(open) != len(ids) {
					t.Errorf("%d are open", len(open))
				}
				for n, a := range s.Approvals() {
					if a.ID != fmt.Sprint(n+1) {
						t.Errorf("the ID is %.100q", a.ID)
					}
				}
			})
		})
	}
}

// TestFloodOfApprovalRequests has agents ask without end, and read no answer.
func TestFloodOfApprovalRequests(t *testing.T) {
	t.Parallel()
	const many = 5000
	for language, d := range dialects() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			turn := d.turn(0, "one")
			steps := append(append([]sessiontest.Step{}, d.greeting...), turn[:len(turn)-2]...)
			steps = append(steps, sessiontest.Step{Kind: sessiontest.Deafen})
			for n := range many {
				steps = append(steps, d.asks(fmt.Sprintf(`"q%d"`, n), "ls"))
			}
			steps = append(append(steps, sessiontest.Step{Kind: sessiontest.Pause, For: time.Minute}), turn[len(turn)-2:]...)
			synctest.Test(t, func(t *testing.T) {
				denied := 0
				s := opened(t, d, steps, session.Options{Events: func(e *agent.Event) error {
					if e.Kind == agent.KindApproval && e.Failed {
						denied++
					}
					return nil
				}})
				sent := s.Send(session.Message{Text: "go"})
				time.Sleep(time.Second)
				if n := len(s.Approvals()); n != engine.MaxApprovals {
					t.Errorf("%d requests are open", n)
				}
				if n := runtime.NumGoroutine(); n > 20_000 {
					t.Errorf("%d goroutines", n)
				}
				if _, err := sent.Wait(t.Context()); err != nil || denied != many-engine.MaxApprovals {
					t.Errorf("%d are denied; %v", denied, err)
				}
			})
		})
	}
}

// TestTurnTimeout interrupts a turn of every engine whose agent does not end it, and
// ends the session when the agent does not end the turn either.
func TestTurnTimeout(t *testing.T) {
	t.Parallel()
	for language, d := range dialects() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			turn := d.turn(0, "one")
			steps := append(append([]sessiontest.Step{}, d.greeting...), turn[:len(turn)-1]...)
			steps = append(steps, sessiontest.Step{Kind: sessiontest.Pause, For: time.Hour})
			synctest.Test(t, func(t *testing.T) {
				peer := sessiontest.Start(steps)
				s, err := session.Open(t.Context(), "test", d.engine(), peer, peer.Transport(), engine.Start{Workdir: "/work"}, session.Options{TurnTimeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
				if took := time.Since(begun); !errors.Is(err, agent.ErrTimeout) || result.Text != "one" || took < time.Minute || took > time.Minute+2*session.TurnGrace {
					t.Errorf("after %v: %q, %v", took, result.Text, err)
				}
				interrupts := 0
				for _, line := range peer.Sent() {
					if strings.Contains(line, "interrupt") || strings.Contains(line, "session/cancel") {
						interrupts++
					}
				}
				if interrupts != 1 {
					t.Errorf("%d interrupts: %q", interrupts, peer.Sent())
				}
				<-s.Done()
				if !errors.Is(s.Err(), agent.ErrTimeout) {
					t.Error(s.Err())
				}
			})
		})
	}
}
