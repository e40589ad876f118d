package appserver_test

import (
	"context"
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

// Lines of a server with thread t and turns 1 and 2.
const (
	startTurn = `{"id":3,"method":"turn/start"}`
	turn1     = `{"id":3,"result":{"turn":{"id":"1"}}}`
	begun1    = `{"method":"turn/started","params":{"threadId":"t","turn":{"id":"1"}}}`
	text1     = `{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"1","itemId":"a","delta":"one"}}`
	ended1    = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"1","status":"completed"}}}`
	turn2     = `{"id":3,"result":{"turn":{"id":"2"}}}`
	begun2    = `{"method":"turn/started","params":{"threadId":"t","turn":{"id":"2"}}}`
	text2     = `{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"2","itemId":"b","delta":"two"}}`
	ended2    = `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"2","status":"completed"}}}`
)

func TestOlderServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sessiontest.Log{}
		peer := sessiontest.Start([]sessiontest.Step{
			expect(`{"id":1,"method":"initialize"}`), say(`{"id":1,"result":{}}`), expect(`{"method":"initialized"}`),
			expect(`{"id":2,"method":"thread/start"}`), say(`{"id":2,"result":{"threadId":"thread-smoke"}}`),
			expect(startTurn), say(`{"id":3,"result":{"turnId":"turn-smoke"}}`),
			say(`{"method":"codex/event/agent_message_delta","params":{"msg":{"delta":"smoke "}}}`),
			say(`{"method":"codex/event/agent_message_delta","params":{"msg":{"delta":"test"}}}`),
			say(`{"method":"turn/completed","params":{"turnId":"turn-smoke","threadId":"thread-smoke"}}`),
			expect(startTurn), say(`{"id":3,"result":{"turnId":"turn-2"}}`),
			say(`{"method":"turn/completed","params":{"turnId":"turn-smoke","threadId":"thread-smoke"}}`),
			say(`{"method":"codex/event/agent_message_delta","params":{"msg":{"delta":"again"}}}`),
			say(`{"method":"turn/completed","params":{"turnId":"turn-2","threadId":"thread-smoke"}}`),
		})
		s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), engine.Start{}, session.Options{Events: l.Event})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		if s.Info().SessionID != "thread-smoke" {
			t.Errorf("%+v", s.Info())
		}
		for i, want := range []string{"smoke test", "again"} {
			result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
			if err != nil || result.Text != want {
				t.Errorf("turn %d: %+v, %v", i, result, err)
			}
		}
	})
}

func TestServerReportsAFailureTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sessiontest.Log{}
		s, _ := plays(t, session.Options{Events: l.Event}, expect(startTurn), say(turn1), say(begun1),
			say(`{"method":"item/started","params":{"threadId":"t","item":{"type":"agentMessage","id":"a"}}}`),
			say(`{"method":"codex/event/agent_message_delta","params":{"msg":{"delta":"one"}}}`), say(text1), say(ended1))
		result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || result.Text != "one" || len(l.Lines()) != 2 {
			t.Errorf("%+v, %v, %q", result, err, l.Lines())
		}
	})
}

// TestItemsOfTheSameName belong to different turns.
func TestItemsOfTheSameName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, expect(startTurn), say(turn1), say(text1), say(ended1), expect(startTurn), say(turn2),
			say(`{"method":"item/completed","params":{"threadId":"t","turnId":"2","item":{"id":"a","type":"agentMessage","text":"two"}}}`), say(ended2))
		for i, want := range []string{"one", "two"} {
			if result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil || result.Text != want {
				t.Errorf("turn %d: %+v, %v", i, result, err)
			}
		}
	})
}

// TestTurnOfTheServer has the server begin a turn without a message.
func TestTurnOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, say(begun2), expect(startTurn), say(turn1), say(text1), say(ended2), pause(time.Second), say(ended1))
		synctest.Wait()
		turn := s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if s.State() != session.StateRunning {
			t.Errorf("%s", s.State())
		}
		if result, err := turn.Wait(t.Context()); err != nil || result.Text != "one" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// TestRefusalDuringATurnOfTheServer fails the message although that turn succeeds.
func TestRefusalDuringATurnOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, expect(startTurn), say(begun2), pause(time.Second), say(`{"id":3,"error":{"code":-32600,"message":"busy"}}`),
			expect(startTurn), say(turn1), say(ended2), say(text1), say(ended1))
		if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
		if result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil || result.Text != "one" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// TestTurnWithoutAnAnswer can be interrupted as soon as it has begun.
func TestTurnWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, expect(startTurn), say(begun1), expect(`{"id":4,"method":"turn/interrupt"}`), say(`{"id":4,"result":{}}`))
		s.Send(session.Message{Text: "go"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Interrupt(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestApprovalRequestThatNeedsNoAnswerAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, expect(startTurn), say(turn1), say(`{"id":5,"method":"item/fileChange/requestApproval","params":{}}`),
			pause(time.Second), say(`{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":5}}`))
		s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if n := len(s.Approvals()); n != 1 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(s.Approvals()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestApprovalRequestsEndWithTheirTurn in the engine, too.
func TestApprovalRequestsEndWithTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start(append(handshake(), expect(startTurn), say(turn1), say(`{"id":5,"method":"item/fileChange/requestApproval","params":{}}`), say(ended1)))
		e := &appserver.Engine{}
		s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{}, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		<-s.Send(session.Message{Text: "go"}).Done()
		if err := e.Answer(t.Context(), "1", engine.Accept); !errors.Is(err, engine.ErrTooLate) {
			t.Error(err)
		}
	})
}

// TestTurnOfEveryOrder has the answer to turn/start, the beginning and the end
// of a turn in every order, and without the answer.
func TestTurnOfEveryOrder(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"as it should be":                 {turn1, begun1, text1, ended1},
		"answer second":                   {begun1, turn1, text1, ended1},
		"answer last":                     {begun1, text1, ended1, turn1},
		"answer last, no beginning":       {text1, ended1, turn1},
		"no answer":                       {begun1, text1, ended1},
		"no beginning":                    {turn1, text1, ended1},
		"nothing but the end":             {text1, ended1},
		"another turn before":             {`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"x"}}}`, turn1, begun1, `{"method":"turn/completed","params":{"turn":{"id":"x"}}}`, text1, ended1},
		"another thread":                  {turn1, `{"method":"turn/completed","params":{"threadId":"u","turn":{"id":"1"}}}`, text1, ended1},
		"all twice":                       {turn1, turn1, begun1, begun1, text1, ended1, ended1},
		"an end without anything":         {turn1, text1, `{"method":"turn/completed"}`},
		"an answer with error null":       {`{"id":3,"result":{"turn":{"id":"1"}},"error":null}`, text1, ended1},
		"a beginning without an ID first": {`{"method":"turn/started","params":{"threadId":"t"}}`, turn1, text1, ended1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				steps := []sessiontest.Step{expect(startTurn)}
				for _, line := range lines {
					steps = append(steps, say(line))
				}
				steps = append(steps, expect(startTurn), say(turn2), say(ended1), say(begun2), say(text2), say(ended2))
				s, _ := plays(t, session.Options{}, steps...)
				for i, want := range []string{"one", "two"} {
					result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
					if err != nil || result.Text != want {
						t.Errorf("turn %d: %+v, %v", i, result, err)
					}
					synctest.Wait()
				}
			})
		})
	}
}

// TestEndThatIsNotUnderstood fails the turn: a status in another form than the
// server's can be that of a failure.
func TestEndThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, turn := range []string{`{"id":"1","status":7}`, `{"id":"1","status":["failed"]}`, `{"id":"1","error":"failed"}`, `{"id":"1","status":"completed","error":{"message":7}}`} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := plays(t, session.Options{}, expect(startTurn), say(turn1), say(text1), say(`{"method":"turn/completed","params":{"threadId":"t","turn":`+turn+`}}`))
			if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); !errors.Is(err, agent.ErrAgent) {
				t.Errorf("%s ends the turn with %v", turn, err)
			}
		})
	}
}

func TestOverload(t *testing.T) {
	t.Parallel()
	const overloaded = `{"id":3,"error":{"code":-32001,"message":"overloaded"}}`
	t.Run("that passes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, _ := plays(t, session.Options{}, expect(startTurn), say(overloaded), expect(startTurn), say(overloaded),
				expect(startTurn), say(turn1), say(text1), say(ended1))
			begun := time.Now()
			result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
			if took := time.Since(begun); err != nil || result.Text != "one" || took < 150*time.Millisecond || took > 300*time.Millisecond {
				t.Errorf("%+v, %v after %v", result, err, took)
			}
		})
	})
	t.Run("that stays", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var steps []sessiontest.Step
			for range 8 {
				steps = append(steps, expect(startTurn), say(overloaded))
			}
			s, peer := plays(t, session.Options{}, steps...)
			begun := time.Now()
			_, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
			if took := time.Since(begun); !errors.Is(err, session.ErrNotDelivered) || took < 6*time.Second || took > 13*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			if n := strings.Count(strings.Join(peer.Sent(), "\n"), "turn/start"); n != 8 {
				t.Errorf("%d attempts", n)
			}
		})
	})
	t.Run("until the message is given up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, _ := plays(t, session.Options{}, expect(startTurn), say(overloaded))
			_, err := s.Send(session.Message{Text: "go", Timeout: 10 * time.Millisecond}).Wait(t.Context())
			if !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrTimeout) {
				t.Error(err)
			}
		})
	})
}

// TestSteerThatIsTooLate has the answers of a real server.
func TestSteerThatIsTooLate(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"another turn runs": `{"error":{"code":-32600,"message":"expected active turn id 1 but found 9"},"id":4}`,
		"no turn runs":      `{"error":{"code":-32600,"message":"no active turn to steer"},"id":4}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, peer := plays(t, session.Options{}, expect(startTurn), say(turn1), say(text1),
					expect(`{"id":4,"method":"turn/steer"}`), say(answer), say(ended1),
					expect(startTurn), say(turn2), say(text2), say(ended2))
				first := s.Send(session.Message{Text: "first"})
				synctest.Wait()
				steered := s.Steer(t.Context(), session.Message{Text: "steered"})
				if steered == first {
					t.Error("it went into the turn")
				}
				for turn, want := range map[*session.Turn]string{first: "one", steered: "two"} {
					if result, err := turn.Wait(t.Context()); err != nil || result.Text != want {
						t.Errorf("%+v, %v", result, err)
					}
				}
				sent := peer.Sent()
				if last := sent[len(sent)-1]; !strings.Contains(last, "turn/start") || !strings.Contains(last, `"steered"`) {
					t.Errorf("sent last: %s", last)
				}
			})
		})
	}
}

func TestInterruptOfATurnThatHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, peer := plays(t, session.Options{}, expect(startTurn), say(turn1), expect(`{"id":4,"method":"turn/interrupt"}`),
			say(ended1), say(`{"id":4,"error":{"code":-32600,"message":"no active turn"}}`))
		turn := s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if err := s.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := turn.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if peer.EndedTools() != 1 {
			t.Errorf("tools ended %d times", peer.EndedTools())
		}
		if err := s.Interrupt(t.Context()); !errors.Is(err, engine.ErrTooLate) || peer.EndedTools() != 1 {
			t.Errorf("without a turn: %v, tools ended %d times", err, peer.EndedTools())
		}
	})
}

// TestInterruptThatIsNotAnswered ends the tools all the same.
func TestInterruptThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, peer := plays(t, session.Options{}, expect(startTurn), say(turn1))
		s.Send(session.Message{Text: "go"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Interrupt(ctx); !errors.Is(err, context.DeadlineExceeded) || peer.EndedTools() != 1 {
			t.Errorf("%v, tools ended %d times", err, peer.EndedTools())
		}
	})
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	const request = `{"id":%s,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","turnId":"1","itemId":"c","command":"ls","reason":"why"}}`
	for _, test := range []struct {
		name, id string
		decision engine.Decision // empty: no answer
		want     string
	}{
		{"accept", "0", engine.Accept, `{"id":0,"result":{"decision":"accept"}}`},
		{"accept for the session", "7", engine.AcceptForSession, `{"id":7,"result":{"decision":"acceptForSession"}}`},
		{"decline", `"text"`, engine.Decline, `{"id":"text","result":{"decision":"decline"}}`},
		{"cancel", "0", engine.Cancel, `{"id":0,"result":{"decision":"cancel"}}`},
		{"an unknown decision", "0", `x"}`, `{"id":0,"result":{"decision":"decline"}}`},
		{"no answer", "0", "", `{"id":0,"result":{"decision":"decline"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := session.Options{ApprovalTimeout: time.Minute}
				if test.decision != "" {
					o.Approve = func(_ context.Context, a session.Approval) engine.Decision {
						if a.Tool.Name != "command" || string(a.Tool.Input) != `{"command":"ls"}` || a.Reason != "why" || a.ID != "1" {
							t.Errorf("%+v", a)
						}
						return test.decision
					}
				}
				s, peer := plays(t, o, expect(startTurn), say(turn1), say(fmt.Sprintf(request, test.id)),
					expect(test.want), say(`{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":`+test.id+`}}`), say(ended1))
				begun := time.Now()
				if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				sent := peer.Sent()
				if got := sent[len(sent)-1]; got != test.want {
					t.Errorf("answered %s", got)
				}
				if took := time.Since(begun); test.decision == "" && took != time.Minute {
					t.Errorf("declined after %v", took)
				}
			})
		})
	}
}

// TestApprovalRequestBeforeTheAnswer is answered although the turn is still being begun.
func TestApprovalRequestBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := session.Options{Approve: func(context.Context, session.Approval) engine.Decision { return engine.Accept }}
		s, _ := plays(t, o, expect(startTurn), say(`{"id":0,"method":"item/fileChange/requestApproval","params":{"threadId":"t"}}`),
			expect(`{"id":0,"result":{}}`), say(turn1), say(ended1))
		if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAnswerAfterTheMessageTimedOut interrupts the late turn, and does not take its
// end for that of the next turn.
func TestAnswerAfterTheMessageTimedOut(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"answered":         {begun1, ended1, turn2, text2, ended2},
		"without answers":  {begun1, ended1, begun2, text2, ended2},
		"ends in its time": {turn2, begun2, text2, ended1, ended2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				steps := []sessiontest.Step{expect(startTurn), pause(time.Minute), say(turn1), expect(`{"id":4,"method":"turn/interrupt"}`), expect(startTurn)}
				for _, line := range lines {
					steps = append(steps, say(line))
				}
				s, peer := plays(t, session.Options{}, steps...)
				late := s.Send(session.Message{Text: "late", Timeout: time.Second})
				next := s.Send(session.Message{Text: "next", Timeout: time.Hour})
				if _, err := late.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrTimeout) {
					t.Error(err)
				}
				if result, err := next.Wait(t.Context()); err != nil || result.Text != "two" {
					t.Errorf("%+v, %v", result, err)
				}
				if all := strings.Join(peer.Sent(), "\n"); !strings.Contains(all, `"method":"turn/interrupt","params":{"threadId":"t","turnId":"1"}`) {
					t.Errorf("sent %s", all)
				}
			})
		})
	}
}

func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, sessiontest.Step{Kind: sessiontest.Deafen}, pause(time.Second),
			say(`{"id":0,"method":"item/tool/requestUserInput"}`), say(`{"id":1,"method":"item/tool/requestUserInput"}`))
		for range 3 {
			turn := s.Send(session.Message{Text: strings.Repeat("long ", 1000), Timeout: time.Minute})
			if _, err := turn.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrTimeout) {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if turn := s.Steer(ctx, session.Message{Text: "x", Timeout: time.Second}); turn == nil {
			t.Error("no turn")
		}
	})
}

func TestTurnsThatFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		turn string
		want error
		text string
	}{
		"login by word":  {`{"id":"1","status":"failed","error":{"message":"no","codexErrorInfo":"unauthorized"}}`, agent.ErrAuthentication, "test: no"},
		"login by code":  {`{"id":"1","status":"failed","error":{"message":"no","codexErrorInfo":{"x":{"httpStatusCode":403}}}}`, agent.ErrAuthentication, "test: no"},
		"quota":          {`{"id":"1","status":"failed","error":{"message":"no","codexErrorInfo":"usageLimitExceeded"}}`, agent.ErrQuota, "test: no"},
		"quota by code":  {`{"id":"1","status":"failed","error":{"message":"no","codexErrorInfo":{"x":{"httpStatusCode":429}}}}`, agent.ErrQuota, "test: no"},
		"other":          {`{"id":"1","status":"failed","error":{"message":"no","codexErrorInfo":"other"}}`, agent.ErrAgent, "test: no"},
		"no reason":      {`{"id":"1","status":"failed"}`, agent.ErrAgent, "test: the turn ended as failed"},
		"unknown status": {`{"id":"1","status":"replaced"}`, agent.ErrAgent, "test: the turn ended as replaced"},
		"error alone":    {`{"id":"1","error":{"message":"no"}}`, agent.ErrAgent, "test: no"},
		"interrupted":    {`{"id":"1","status":"interrupted"}`, agent.ErrCanceled, "test: the turn was interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := plays(t, session.Options{}, expect(startTurn), say(turn1), say(`{"method":"turn/completed","params":{"threadId":"t","turn":`+test.turn+`}}`))
				_, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
				if !errors.Is(err, test.want) || err.Error() != test.text {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestSubagents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sessiontest.Log{}
		s, _ := plays(t, session.Options{Events: l.Event}, expect(startTurn), say(turn1), say(text1),
			say(`{"method":"item/agentMessage/delta","params":{"threadId":"sub","turnId":"9","itemId":"z","delta":"sub"}}`),
			say(`{"method":"thread/tokenUsage/updated","params":{"threadId":"sub","turnId":"9","tokenUsage":{"total":{"inputTokens":77}}}}`),
			say(`{"method":"turn/completed","params":{"threadId":"sub","turn":{"id":"9","status":"completed"}}}`),
			say(`{"method":"thread/tokenUsage/updated","params":{"threadId":"t","turnId":"1","tokenUsage":{"total":{"inputTokens":5}}}}`), say(ended1))
		result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
		if err != nil || result.Text != "one" || result.Usage.Input != 5 {
			t.Errorf("%+v, %v", result, err)
		}
		if got := strings.Count(strings.Join(l.Lines(), "\n"), `"subagent":"sub"`); got != 3 {
			t.Errorf("%d events of the subagent in %q", got, l.Lines())
		}
	})
}
