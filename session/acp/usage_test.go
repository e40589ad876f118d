package acp_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// TestTokensOfTurns adds the tokens of turns, whether or not an agent counts cached
// tokens and thoughts as input and output.
func TestTokensOfTurns(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]string{
		`{"totalTokens":150,"inputTokens":100,"outputTokens":50,"cachedReadTokens":60,"thoughtTokens":20}`:                        "100 50 (60 20)",
		`{"totalTokens":240,"inputTokens":100,"outputTokens":50,"cachedReadTokens":60,"cachedWriteTokens":10,"thoughtTokens":20}`: "170 70 (60 20)",
		`{"totalTokens":170,"inputTokens":100,"outputTokens":50,"thoughtTokens":20}`:                                              "100 70 (0 20)",
		`{"inputTokens":100,"outputTokens":50,"cachedReadTokens":60}`:                                                             "100 50 (60 0)",
		`{"totalTokens":-1,"inputTokens":-5,"outputTokens":50,"cachedReadTokens":null}`:                                           "0 50",
	} {
		t.Run(usage, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, r := open(t, e, engine.Start{})
				p.answer(send(t, e, p, "go"), `{"stopReason":"end_turn","usage":`+usage+`}`)
				p.end()
				<-r.closed
				check(t, r, "session_started s", "usage "+want, "result")
			})
		})
	}
}

// Tokens that come with the messages count if the end of the turn has none.
func TestTokensOfMessages(t *testing.T) {
	t.Parallel()
	for end, want := range map[string][]string{
		`{"stopReason":"end_turn"}`: {"usage 300 70 (80 5)", "result"},
		`{"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":8}}`: {"usage 7 8", "result"},
		`{"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0}}`: {"usage 300 70 (80 5)", "result"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &acp.Engine{}
			p, r := open(t, e, engine.Start{})
			id := send(t, e, p, "go")
			for _, meta := range []string{
				`{"usage":{"inputTokens":100,"outputTokens":50,"totalTokens":150,"thoughtTokens":5,"cachedReadTokens":30},"durationMs":1}`,
				`{"usage":{"inputTokens":200,"outputTokens":20,"totalTokens":220,"cachedReadTokens":50}}`, `{"usage":7}`, `[]`,
			} {
				p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":` + meta + `}`)
			}
			p.answer(id, end)
			p.end()
			<-r.closed
			check(t, r, append([]string{"session_started s"}, want...)...)
		})
	}
}

func TestContextAndCost(t *testing.T) {
	t.Parallel()
	update := func(used int, cost string) string {
		return fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d,"size":1000%s}`, used, cost)
	}
	usd := func(amount string) string { return `,"cost":{"amount":` + amount + `,"currency":"USD"}` }
	for name, test := range map[string]struct {
		resume string
		before []string // while the session is loaded
		during []string
		want   []string
	}{
		"new": {"", nil, []string{update(10, ""), update(20, usd("0.5")), update(30, `,"cost":{"amount":9,"currency":"EUR"}`), update(5, `,"cost":7`)}, []string{
			"usage 0 0 context 10/1000", "usage 0 0 context 20/1000 $0.5", "usage 0 0 context 30/1000 $0.5",
			`raw {"jsonrpc":"2.0","method":"session/update","params":{"sessio`, "usage 3 4 context 30/1000 $0.5",
		}},
		"resumed":                 {"s", []string{update(10, usd("2"))}, []string{update(20, usd("2.5"))}, []string{"usage 0 0 context 20/1000 $0.5", "usage 3 4 context 20/1000 $0.5"}},
		"resumed at unknown cost": {"s", nil, []string{update(20, usd("2.5"))}, []string{"usage 0 0 context 20/1000", "usage 3 4 context 20/1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, transport := newPeer(t)
				r := newRecord(t)
				go func() {
					if test.resume == "" {
						p.greet()
						return
					}
					p.answer(p.expect("initialize"), greeting)
					m := p.expect("session/load")
					for _, u := range test.before {
						p.update(u)
					}
					p.answer(m, `{}`)
					p.refuse(p.expect("_bus-agent/nothing"), -32601, "unknown")
				}()
				if _, err := e.Open(t.Context(), transport, engine.Start{Resume: test.resume}, r); err != nil {
					t.Fatal(err)
				}
				m := send(t, e, p, "go")
				for _, u := range test.during {
					p.update(u)
				}
				p.answer(m, `{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4}}`)
				p.end()
				<-r.closed
				check(t, r, append(append([]string{"session_started s"}, test.want...), "result")...)
			})
		})
	}
}
