package streamjson_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// TestAcceptedForTheSession is not asked again for the same, whatever the agent
// proposes, and for something else it is.
func TestAcceptedForTheSession(t *testing.T) {
	t.Parallel()
	asks := func(id, tool, input string) sessiontest.Step {
		return say(`{"type":"control_request","request_id":"` + id + `","request":{"subtype":"can_use_tool","tool_name":"` + tool + `","input":` + input + `}}`)
	}
	answered := func(id string) sessiontest.Step {
		return expect(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `"}}`)
	}
	byPath := func(_ string, input json.RawMessage) string {
		var in struct{ Path string }
		_ = json.Unmarshal(input, &in)
		return in.Path
	}
	for name, test := range map[string]struct {
		subject func(string, json.RawMessage) string
		tool    string
		input   string
		again   bool
	}{
		"the same":               {nil, "Write", `{"path":"a","text":"1"}`, false},
		"another input":          {nil, "Write", `{"path":"a","text":"2"}`, true},
		"another tool":           {nil, "Read", `{"path":"a","text":"1"}`, true},
		"the same subject":       {byPath, "Write", `{"path":"a","text":"2"}`, false},
		"another subject":        {byPath, "Write", `{"path":"b","text":"1"}`, true},
		"a subject of two tools": {byPath, "Read", `{"path":"a"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				peer := sessiontest.Start(append(greeting(), expect(userLine),
					asks("q1", "Write", `{"path":"a","text":"1"}`), answered("q1"), asks("q2", test.tool, test.input), answered("q2"), say(result)))
				var asked atomic.Int32
				o := session.Options{ApprovalTimeout: time.Minute, Approve: func(context.Context, session.Approval) engine.Decision {
					asked.Add(1)
					return engine.AcceptForSession
				}}
				e := newEngine()
				e.Subject = test.subject
				s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{}, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop(context.Background(), "")
				if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if again := asked.Load() == 2; again != test.again {
					t.Errorf("asked %d times", asked.Load())
				}
				if got := last(peer.Sent()); !strings.Contains(got, `"behavior":"allow"`) || !strings.Contains(got, test.input) {
					t.Errorf("answered %s", got)
				}
			})
		})
	}
}

func TestOpenThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start([]sessiontest.Step{expect(greeting()[0].Line),
			say(`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No such session: x"]}`), {Kind: sessiontest.Die}})
		_, err := session.Open(t.Context(), "test", newEngine(), peer, peer.Transport(), engine.Start{Resume: "x"}, session.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), ": No such session: x") {
			t.Error(err)
		}
	})
}

func TestResumedSessionHasItsID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start(greeting())
		s, err := session.Open(t.Context(), "test", newEngine(), peer, peer.Transport(), engine.Start{Resume: "x"}, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		if s.Info().SessionID != "x" {
			t.Errorf("%+v", s.Info())
		}
	})
}

// TestTurnsThatFailCostNothing where the agent's totals do not move.
func TestTurnsThatFailCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const paid = `{"type":"result","subtype":"success","is_error":%t,"result":"","modelUsage":{"m":{"inputTokens":7,"costUSD":0.5}},"total_cost_usd":0.5,"uuid":"%n"}`
		line := func(failed, tokens string) string {
			return strings.NewReplacer("%t", failed, "%n", tokens).Replace(paid)
		}
		s, _ := plays(t, session.Options{}, expect(userLine), say(line("false", "7")), expect(userLine), say(line("true", "0")))
		for i, wantUsage := range []bool{true, false} {
			r, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
			if (r.Usage != nil) != wantUsage || (err == nil) != wantUsage {
				t.Errorf("turn %d: %+v, %v", i, r.Usage, err)
			}
		}
	})
}

// TestInterruptEndsTools that the agent leaves running.
func TestInterruptEndsTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, peer := plays(t, session.Options{}, expect(userLine), expect(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`),
			say(`{"type":"control_response","response":{"subtype":"success","request_id":"i"}}`), say(failure))
		turn := s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if err := s.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) || peer.EndedTools() != 1 {
			t.Errorf("%v, tools were ended %d times", err, peer.EndedTools())
		}
	})
}

// A name that is made to lead to another file is not accepted by what the user accepted
// before.
func TestHostileNamesOfAcceptedFiles(t *testing.T) {
	t.Parallel()
	for name, relink := range map[string]bool{"the same file": false, "another file": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				link := filepath.Join(dir, "link")
				lead := func(to string) {
					_ = os.Remove(link)
					if err := os.Symlink(filepath.Join(dir, to), link); err != nil {
						t.Error(err)
					}
				}
				lead("a")
				ask := func(id string) sessiontest.Step {
					return say(`{"type":"control_request","request_id":"` + id + `","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"path":"` + link + `"}}}`)
				}
				answered := func(id string) sessiontest.Step {
					return expect(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `"}}`)
				}
				peer := sessiontest.Start(append(greeting(), expect(userLine), ask("q1"), answered("q1"), ask("q2"), answered("q2"), say(result)))
				var asked atomic.Int32
				o := session.Options{ApprovalTimeout: time.Minute, Approve: func(context.Context, session.Approval) engine.Decision {
					asked.Add(1)
					if relink {
						lead("b")
					}
					return engine.AcceptForSession
				}}
				e := newEngine()
				e.Edits = func(string, json.RawMessage) []string { return []string{link} }
				s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{Workdir: dir}, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop(context.Background(), "")
				if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if again := asked.Load() == 2; again != relink {
					t.Errorf("asked %d times", asked.Load())
				}
			})
		})
	}
}
