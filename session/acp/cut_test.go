package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// maxLine is what these tests take for a long line, in bytes.
const maxLine = 2000

// TestUnreadableAnswers proves that a turn whose end is too long, or cut,
// ends as the head of the line says, or else fails.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		`"result":{"stopReason":"end_turn","_meta":{"text":"`:         "result",
		`"result":{"stopReason":"cancelled","_meta":{"text":"`:        "result failed interrupted",
		`"result":{"_meta":{"text":"`:                                 "result failed the agent gives no reason for the end of the turn",
		`"error":{"code":429,"message":"no more","data":{"details":"`: "result failed quota no more",
		`"more":{"text":"`: "result failed the agent's answer cannot be read",
	} {
		for name, rest := range map[string]string{"cut": "", "long": strings.Repeat("x", maxLine) + `"},"stopReason":"end_turn"}}`} {
			t.Run(name+" "+head, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := &acp.Engine{}
					e.SetMaxLine(maxLine)
					p, r := open(t, e, engine.Start{})
					m := send(t, e, p, "go")
					p.say(`{"jsonrpc":"2.0","id":%s,%s%s`, *m.ID, head, rest)
					m = send(t, e, p, "again")
					p.answer(m, `{"stopReason":"end_turn"}`)
					p.end()
					<-r.closed
					lines := strings.Split(r.String(), "\n")
					if len(lines) != 4 || !strings.HasPrefix(lines[1], `raw {"jsonrpc"`) || !strings.HasPrefix(lines[2], want) || want == "result" && lines[2] != want || lines[3] != "result" {
						t.Errorf("%q", lines)
					}
				})
			})
		}
	}
}

// TestUnreadableApprovalRequests checks that the engine declines a request that it
// cannot read: the agent waits for an answer.
func TestUnreadableApprovalRequests(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]message{
		`"id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"`: {Result: []byte(cancelled)},
		`"method":"fs/write_text_file","id":"7","params":{"content":{"text":"`:                                          {Error: []byte(`{"code":-32601,"message":"not supported by this client: fs/write_text_file"}`)},
	} {
		for name, rest := range map[string]string{"cut": "", "long": strings.Repeat("x", maxLine) + `"}}}`} {
			t.Run(name+" "+head, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := &acp.Engine{}
					e.SetMaxLine(maxLine)
					p, r := open(t, e, engine.Start{})
					prompt := send(t, e, p, "go")
					p.say(`{"jsonrpc":"2.0",%s%s`, head, rest)
					got, _ := p.next()
					if got.ID == nil || strings.Trim(string(*got.ID), `"`) != "7" || string(got.Result) != string(want.Result) || string(got.Error) != string(want.Error) {
						t.Errorf("answered %s %s", got.Result, got.Error)
					}
					p.answer(prompt, `{"stopReason":"end_turn"}`)
					p.end()
					<-r.closed
					if lines := strings.Split(r.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "raw ") || lines[2] != "result" {
						t.Errorf("%q", lines)
					}
				})
			})
		}
	}
}
