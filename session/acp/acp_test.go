package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// TestMain fails when anything is logged: standard error is not ours to write to.
func TestMain(m *testing.M) {
	var logged logged
	slog.SetDefault(slog.New(&logged))
	code := m.Run()
	if n := logged.Load(); n > 0 && code == 0 {
		fmt.Fprintf(os.Stderr, "%d lines were logged\n", n)
		code = 1
	}
	os.Exit(code)
}

type logged struct{ atomic.Int64 }

func (l *logged) Enabled(context.Context, slog.Level) bool  { return true }
func (l *logged) Handle(context.Context, slog.Record) error { l.Add(1); return nil }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l *logged) WithGroup(string) slog.Handler             { return l }
func lines(text ...string) string                           { return strings.Join(text, "\n") }
func check(t *testing.T, got fmt.Stringer, want ...string) {
	t.Helper()
	checkText(t, got.String(), lines(want...))
}
func checkText(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		updates []string
		want    []string
	}{
		"messages": {[]string{
			`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one "}}`,
			`{"sessionUpdate":"available_commands_update","availableCommands":7}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] yolo"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and"}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"three"}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"resource_link","uri":"file:///x"}}`,
			`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"mine"}}`,
		}, []string{"thinking hm", "text one and", `tool_call t x {"description":"x"}`, "text two", "text three", "text file:///x"}},
		"tools": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read","kind":"read","status":"pending","locations":[{"path":"/a"}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"part"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"u","kind":"other","title":"Ask","rawInput":{"q":12345678901234567890},"status":"failed","rawOutput":"no"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"v","kind":"fetch","rawInput":{},"status":"completed","rawOutput":{"n":1}}`,
		}, []string{
			`tool_call t read {"path":"/a","description":"Read"}`, "tool_result t failed=false part",
			`tool_call u Ask {"q":12345678901234567890}`, "tool_result u failed=true no",
			`tool_call v fetch {}`, `tool_result v failed=false {"n":1}`,
		}},
		"a call whose input comes later": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Terminal","kind":"execute","status":"pending","rawInput":{}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"ls -l","rawInput":{"command":"ls -l"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":"x"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"u","title":"bash","status":"pending"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"u","kind":"execute","status":"in_progress","title":"run it","locations":[{"path":"/a"}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"u","status":"completed","rawInput":{"command":"./a"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"u","rawInput":{"command":"late"}}`,
		}, []string{
			`tool_call t execute {"description":"Terminal"}`, `tool_call again t execute {"command":"ls -l"}`, "tool_result t failed=false x",
			`tool_call u bash {"description":"bash"}`, `tool_call again u execute {"path":"/a","description":"run it"}`,
			`tool_call again u execute {"command":"./a"}`, "tool_result u failed=false",
		}},
		"a call whose input comes in pieces": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Terminal","kind":"execute"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":"l"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":"ls"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":"ls -l"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}`,
		}, []string{
			`tool_call t execute {"description":"Terminal"}`, `tool_call again t execute {"command":"l"}`, `tool_call again t execute {"command":"ls -l"}`,
		}},
		"files": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"edit","status":"completed","content":[` +
				`{"type":"diff","path":"/new","newText":"x"},{"type":"diff","path":"/old","oldText":"x","newText":"y"},{"type":"diff","path":"/gone","oldText":"x","newText":""},` +
				`{"type":"diff","path":"/empty","oldText":"","newText":"x","_meta":{"kind":"modify"}}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"u","kind":"edit","status":"failed","content":[{"type":"diff","path":"/not","newText":"x"}]}`,
		}, []string{
			"tool_call t edit {}", "file_change add /new update /old delete /gone update /empty", "tool_result t failed=false",
			"tool_call u edit {}", "tool_result u failed=true",
		}},
		"plan": {[]string{
			`{"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"completed"},{"content":"leap","status":"pending"}]}`,
		}, []string{"plan [{look completed} {leap pending}]"}},
		"unknown": {[]string{
			`{"sessionUpdate":"mood","mood":"good"}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"x"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":null}`,
			`{"sessionUpdate":"tool_call","title":"no ID"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"t","content":7}`,
			`{"sessionUpdate":7}`,
			`7`,
		}, slices.Repeat([]string{`raw {"jsonrpc":"2.0","method":"session/update","params":{"sessio`}, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, r := open(t, &acp.Engine{Notices: notices}, engine.Start{})
				for _, u := range test.updates {
					p.update(u)
				}
				p.end()
				<-r.closed
				check(t, r, append([]string{"session_started s"}, test.want...)...)
			})
		})
	}
}

func TestEndsOfTurns(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"stopReason":"end_turn"}`:          "result",
		`{"stopReason":"cancelled"}`:         "result failed interrupted",
		`{"stopReason":"max_tokens"}`:        "result failed max_tokens the answer has reached the limit of tokens",
		`{"stopReason":"max_turn_requests"}`: "result failed max_requests the turn has reached the limit of requests to the model",
		`{"stopReason":"refusal"}`:           "result failed refusal the agent refuses to answer",
		`{"stopReason":"boredom"}`:           "result failed the turn has ended: boredom",
		`{}`:                                 "result failed the agent gives no reason for the end of the turn",
		`7`:                                  "result failed the answer is not understood: json: cannot unmarshal number into Go value of type acp.promptResult",
		`error 429`:                          "result failed quota text (429)",
		`error 403`:                          "result failed authentication text (403)",
		`error -32000`:                       "result failed authentication text (-32000)",
		`error -32603,"data":{"details":"disk full"}`:                        "result failed text: disk full (-32603)",
		`error -32603,"data":{"message":"disk full"}`:                        "result failed text: disk full (-32603)",
		`error -32603,"data":{"error":{"message":"disk full"}}`:              "result failed text: disk full (-32603)",
		`error -32603,"data":"disk full"`:                                    "result failed text: disk full (-32603)",
		`error -32603,"data":{"details":"text"}`:                             "result failed text (-32603)",
		`error -32603,"data":{"details":7,"error":[]}`:                       "result failed text (-32603)",
		`line {"jsonrpc":"2.0","id":3,"error":"boom"}`:                       "result failed \"boom\" (0)",
		`line {"jsonrpc":"2.0","id":3.0,"result":{"stopReason":"end_turn"}}`: "result",
		`line {"id":3,"result":"` + strings.Repeat("x", 17<<20) + `"}`:       "raw {\"id\":3,\"result\":\"" + strings.Repeat("x", 42) + "\nresult failed the answer is not understood: json: cannot unmarshal string into Go value of type acp.promptResult",
	} {
		t.Run(answer[:min(len(answer), 40)], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, r := open(t, e, engine.Start{})
				m := send(t, e, p, "go")
				if code, ok := strings.CutPrefix(answer, "error "); ok {
					p.say(`{"jsonrpc":"2.0","id":%s,"error":{"message":"text","code":%s}}`, *m.ID, code)
				} else if line, ok := strings.CutPrefix(answer, "line "); ok {
					p.say("%s", line)
				} else {
					p.answer(m, answer)
				}
				m = send(t, e, p, "again")
				p.answer(m, `{"stopReason":"end_turn"}`)
				p.end()
				<-r.closed
				check(t, r, "session_started s", want, "result")
			})
		})
	}
}

func TestTurnsThatCannotBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Send(ctx, "late"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := e.Steer(t.Context(), "x"); !errors.Is(err, engine.ErrUnsupported) {
			t.Error(err)
		}
		if err := e.Interrupt(t.Context()); err != nil { // or it would wait for a reader
			t.Error(err)
		}
		p.in.Close() // the agent reads no more
		for range 2 {
			if err := e.Send(t.Context(), "unread"); err == nil {
				t.Error("the message is taken")
			}
		}
		p.end()
		<-r.closed
		if err := e.Send(t.Context(), "dead"); err == nil || err.Error() != "the agent's output has ended" {
			t.Error(err)
		}
		check(t, r, "session_started s")
	})
}

func TestAgentThatReadsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := (&acp.Engine{}).Open(ctx, transport, engine.Start{}, r); err == nil {
			t.Error("it is open")
		}
		p.end()
		<-r.closed
	})
}

func TestOpenSets(t *testing.T) {
	t.Parallel()
	const options = `{"sessionId":"s","configOptions":[{"id":"m1","category":"mode","type":"select","currentValue":"plan","options":[]},` +
		`{"id":"m2","category":"model","type":"select","currentValue":"small","options":[]},{"id":"t","category":"thought_level","type":"select","currentValue":"low","options":[]}]}`
	const have = `{"sessionId":"s","modes":{"availableModes":[],"currentModeId":"plan"},"models":{"availableModels":[],"currentModelId":"small"}}`
	for name, test := range map[string]struct {
		start   engine.Start
		session string
		says    []string
		model   string
	}{
		"nothing":        {engine.Start{}, have, nil, "small"},
		"what it has":    {engine.Start{Model: "small", Access: agent.AccessRead}, have, nil, "small"},
		"model and mode": {engine.Start{Model: "big", Access: agent.AccessFull}, have, []string{`session/set_mode {"modeId":"yolo","sessionId":"s"}`, `session/set_model {"modelId":"big","sessionId":"s"}`}, "big"},
		"options": {engine.Start{Model: "big", Effort: agent.EffortHigh, Access: agent.AccessFull}, options, []string{
			`session/set_config_option {"configId":"m1","sessionId":"s","value":"yolo"}`, `session/set_config_option {"configId":"m2","sessionId":"s","value":"big"}`,
			`session/set_config_option {"configId":"t","sessionId":"s","value":"high"}`,
		}, "big"},
		"named effort":      {engine.Start{Effort: agent.EffortMinimal, Access: agent.AccessRead}, options, []string{`session/set_config_option {"configId":"t","sessionId":"s","value":"none"}`}, "small"},
		"options it has":    {engine.Start{Model: "small", Effort: agent.EffortLow, Access: agent.AccessRead}, options, nil, "small"},
		"strange options":   {engine.Start{Model: "big"}, `{"sessionId":"s","configOptions":[7,{"id":"a","category":"model","currentValue":true},{"id":9}]}`, []string{`session/set_config_option {"configId":"a","sessionId":"s","value":"big"}`}, "big"},
		"options of no use": {engine.Start{Model: "big"}, `{"sessionId":"s","configOptions":{"id":"a"}}`, nil, ""},
		"no models to set":  {engine.Start{Model: "big", Access: agent.AccessFull}, `{"sessionId":"s"}`, []string{`session/set_mode {"modeId":"yolo","sessionId":"s"}`}, ""},
		"no mode for it":    {engine.Start{Access: agent.AccessWrite}, have, nil, "small"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, transport := newPeer(t)
				r := newRecord(t)
				var says []string
				go func() {
					p.answer(p.expect("initialize"), greeting)
					p.answer(p.expect("session/new"), test.session)
					for range test.says {
						m, _ := p.next()
						says = append(says, m.Method+" "+string(m.Params))
						p.answer(m, `{}`)
					}
				}()
				e := &acp.Engine{
					Modes:   map[agent.Access]string{agent.AccessRead: "plan", agent.AccessFull: "yolo"},
					Efforts: map[agent.ReasoningEffort]string{agent.EffortMinimal: "none", agent.EffortHigh: ""},
				}
				info, err := e.Open(t.Context(), transport, test.start, r)
				if err != nil || info.SessionID != "s" || info.Model != test.model || info.Steers {
					t.Errorf("%+v, %v", info, err)
				}
				if diff := cmp.Diff(test.says, says); diff != "" {
					t.Error(diff)
				}
				p.end()
				<-r.closed
			})
		})
	}
}

func TestSetLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{Modes: modes}
		p, r := open(t, e, engine.Start{})
		if err := e.SetModel(t.Context(), "big"); !errors.Is(err, engine.ErrUnsupported) {
			t.Error(err) // it named none
		}
		if err := e.SetAccess(t.Context(), "other"); !errors.Is(err, engine.ErrUnsupported) {
			t.Error(err)
		}
		go func() { p.refuse(p.expect("session/set_mode"), -32601, "unknown") }()
		if err := e.SetAccess(t.Context(), agent.AccessFull); !errors.Is(err, engine.ErrUnsupported) {
			t.Error(err)
		}
		p.end()
		<-r.closed
	})
}

func TestOpenThatIsRefused(t *testing.T) {
	t.Parallel()
	auth := &acp.Engine{AuthMethod: "key"}
	for name, test := range map[string]struct {
		engine *acp.Engine
		start  engine.Start
		serve  func(p *peer)
		want   string
		kind   error
	}{
		"greeting": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.refuse(p.expect("initialize"), -32603, "no")
		}, "greet: no (-32603)", nil},
		"version": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), `{"protocolVersion":2}`)
		}, "the agent speaks version 2 of the protocol, not 1", nil},
		"login": {auth, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), greeting)
			p.refuse(p.expect("authenticate"), 401, `{"error":{"message":"bad key"}}`)
		}, "log in: bad key (401)", agent.ErrAuthentication},
		"no login": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), greeting)
			p.refuse(p.expect("session/new"), -32000, "Authentication required")
		}, "begin a session: Authentication required (-32000)", agent.ErrAuthentication},
		"no login, with methods": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), `{"protocolVersion":1,"authMethods":[{"id":"oauth","name":"Log in with a browser"},{"id":"api-key"}]}`)
			p.refuse(p.expect("session/new"), -32000, "Authentication required")
		}, "begin a session: Authentication required (-32000); log in with the agent's program, which offers: Log in with a browser, api-key", agent.ErrAuthentication},
		"no login, with strange methods": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), `{"protocolVersion":1,"authMethods":{"id":7}}`)
			p.refuse(p.expect("session/new"), -32000, "Authentication required")
		}, "begin a session: Authentication required (-32000)", agent.ErrAuthentication},
		"no ID": {&acp.Engine{}, engine.Start{}, func(p *peer) {
			p.answer(p.expect("initialize"), greeting)
			p.answer(p.expect("session/new"), `{}`)
		}, "begin a session: the agent gives no session ID", nil},
		"cannot load": {&acp.Engine{}, engine.Start{Resume: "old"}, func(p *peer) {
			p.answer(p.expect("initialize"), `{"protocolVersion":1}`)
		}, "resume: the runtime has no way to do it", engine.ErrUnsupported},
		"no such session": {&acp.Engine{}, engine.Start{Resume: "old"}, func(p *peer) {
			p.answer(p.expect("initialize"), greeting)
			p.refuse(p.expect("session/load"), -32603, "No previous sessions found")
		}, "load session old: No previous sessions found (-32603)", nil},
		"mode": {&acp.Engine{Modes: modes}, engine.Start{Access: agent.AccessRead}, func(p *peer) {
			p.greet()
			p.refuse(p.expect("session/set_mode"), -32602, "no such mode")
		}, "set mode plan: no such mode (-32602)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, transport := newPeer(t)
				r := newRecord(t)
				go test.serve(p)
				_, err := test.engine.Open(t.Context(), transport, test.start, r)
				if err == nil || err.Error() != test.want || test.kind != nil && !errors.Is(err, test.kind) {
					t.Error(err)
				}
				test.engine.Close()
				p.end()
				<-r.closed
			})
		})
	}
}

// TestSilence is a failure where the runtime says so.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say    func(p *peer)
		answer string
		want   []string
	}{
		"nothing": {func(*peer) {}, `{"stopReason":"end_turn"}`, []string{"result failed the model has not answered"}},
		"thoughts": {func(p *peer) {
			p.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		}, `{"stopReason":"end_turn"}`, []string{"thinking hm", "result failed the model has not answered"}},
		"text":        {func(p *peer) { p.chunk("yes") }, `{"stopReason":"end_turn"}`, []string{"text yes", "result"}},
		"a tool call": {func(p *peer) { p.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls"}`) }, `{"stopReason":"end_turn"}`, []string{`tool_call t ls {"description":"ls"}`, "result"}},
		"tokens":      {func(*peer) {}, `{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":1}}}}`, []string{"usage 1 0", "result"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{SilenceFails: true}
				p, r := open(t, e, engine.Start{})
				m := send(t, e, p, "go")
				test.say(p)
				p.answer(m, test.answer)
				m = send(t, e, p, "again")
				p.answer(m, `{"stopReason":"end_turn"}`)
				p.end()
				<-r.closed
				check(t, r, append(append([]string{"session_started s"}, test.want...), "result failed the model has not answered")...)
			})
		})
	}
}

func TestMessagesAreSentInPieces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guard func(string) []string
		want  string
	}{
		"one": {nil, `[{"type":"text","text":"/help"}]`},
		"two": {func(text string) []string { return []string{"Message:", text} }, `[{"type":"text","text":"Message:"},{"type":"text","text":"/help"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{Guard: test.guard}
				p, r := open(t, e, engine.Start{})
				m := send(t, e, p, "/help")
				var params struct{ Prompt json.RawMessage }
				if err := json.Unmarshal(m.Params, &params); err != nil || string(params.Prompt) != test.want {
					t.Errorf("%s, %v", m.Params, err)
				}
				p.answer(m, `{"stopReason":"end_turn"}`)
				p.end()
				<-r.closed
			})
		})
	}
}
