package acp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// TestFailuresThatTheRuntimeKnows are classified by text, whatever the code.
func TestFailuresThatTheRuntimeKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{
			Failure: func(text string) agent.Failure {
				if strings.HasSuffix(text, ": no credits (-32000)") {
					return agent.FailureQuota
				}
				return ""
			},
			UpdateFails: func(meta json.RawMessage) bool { return string(meta) == `{"failed":true}` },
			AnswerFailure: func(beginning string) (agent.Failure, bool) {
				if len(beginning) > 4<<10 {
					t.Errorf("the beginning has %d bytes", len(beginning))
				}
				return agent.FailureAuthentication, strings.HasPrefix(beginning, "Please log in")
			},
		}
		p, r := open(t, e, engine.Start{})
		m := send(t, e, p, "go")
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"message":"text","code":-32000,"data":{"message":"no credits"}}}`, *m.ID)
		m = send(t, e, p, "go")
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"message":"text","code":-32000}}`, *m.ID)
		m = send(t, e, p, "go")
		p.chunk("Please")
		p.chunk(" log in.")
		p.answer(m, `{"stopReason":"end_turn"}`)
		m = send(t, e, p, "go")
		p.chunk("fine")
		p.answer(m, `{"stopReason":"end_turn"}`)
		m = send(t, e, p, "go")
		p.chunk(strings.Repeat("longer", 2000))
		p.answer(m, `{"stopReason":"end_turn"}`)
		m = send(t, e, p, "go")
		p.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update","_meta":{"failed":true}}}}`)
		p.chunk("status 500")
		p.answer(m, `{"stopReason":"end_turn"}`)
		p.end()
		<-r.closed
		check(t, r, "session_started s", "result failed quota text: no credits (-32000)", "result failed authentication text (-32000)",
			"text Please log in.", "result failed authentication Please log in.", "text fine", "result",
			"text "+strings.Repeat("longer", 2000), "result", "text status 500", "result failed status 500")
	})
}

// TestModelInArguments is not set again: the agent can offer it under another ID.
func TestModelInArguments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		go func() {
			p.answer(p.expect("initialize"), greeting)
			p.answer(p.expect("session/new"), `{"sessionId":"s","models":{"currentModelId":"$runtime|openai|m(openai)"}}`)
		}()
		info, err := (&acp.Engine{ModelInArgs: true}).Open(t.Context(), transport, engine.Start{Model: "m"}, r)
		if err != nil || info.Model != "m" {
			t.Errorf("Open = %+v, %v", info, err)
		}
		p.end()
		<-r.closed
	})
}

func TestEffortThatIsNotOffered(t *testing.T) {
	t.Parallel()
	for inArgs, want := range map[bool][]string{
		false: {"session_started s", `warning the agent offers no reasoning effort for this model; "high" is ignored`},
		true:  {"session_started s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, r := open(t, &acp.Engine{EffortInArgs: inArgs}, engine.Start{Effort: agent.EffortHigh})
			p.end()
			<-r.closed
			check(t, r, want...)
		})
	}
}

func TestModelsThatMustBeOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		go func() {
			p.answer(p.expect("initialize"), greeting)
			p.answer(p.expect("session/new"), `{"sessionId":"s"}`)
		}()
		_, err := (&acp.Engine{ModelsOffered: true}).Open(t.Context(), transport, engine.Start{Model: "big"}, r)
		if !errors.Is(err, engine.ErrUnsupported) || !strings.Contains(err.Error(), "set model big: ") {
			t.Errorf("Open = %v, want ErrUnsupported that names the model", err)
		}
		p.end()
		<-r.closed
	})
}
