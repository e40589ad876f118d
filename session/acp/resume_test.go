package acp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// nextMinute is a rule for a delay.
func nextMinute(created, now time.Time) time.Duration {
	return max(0, created.Truncate(time.Minute).Add(time.Minute).Sub(now))
}

func TestResumeWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		age     time.Duration
		unknown bool
		delay   func(created, now time.Time) time.Duration
		want    time.Duration
	}{
		"this minute":     {10 * time.Second, false, nextMinute, 20 * time.Second},
		"a minute before": {41 * time.Second, false, nextMinute, 0},
		"who knows":       {0, true, nextMinute, 20 * time.Second},
		"no rule":         {0, false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // its clock begins with a minute
				time.Sleep(time.Minute + 40*time.Second)
				p, transport := newPeer(t)
				r := newRecord(t)
				begun := time.Now()
				go func() {
					p.answer(p.expect("initialize"), greeting)
					m := p.expect("session/load")
					if waited := time.Since(begun); waited != test.want {
						t.Errorf("it is loaded after %v", waited)
					}
					p.answer(m, `{}`)
					p.refuse(p.expect("_bus-agent/nothing"), -32601, "unknown")
				}()
				start := engine.Start{Resume: "s", Created: time.Now().Add(-test.age)}
				if test.unknown {
					start.Created = time.Time{}
				}
				info, err := (&acp.Engine{LoadDelay: test.delay}).Open(t.Context(), transport, start, r)
				if err != nil || info.SessionID != "s" {
					t.Error(info, err)
				}
				p.end()
				<-r.closed
			})
		})
	}
}

func TestResumeThatIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { p.answer(p.expect("initialize"), greeting) }()
		_, err := (&acp.Engine{LoadDelay: nextMinute}).Open(ctx, transport, engine.Start{Resume: "s"}, r)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		p.end()
		<-r.closed
	})
}

// TestHistory proves that nothing of earlier turns becomes an event, however late
// it comes, and that all of the next turn does.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settle func(p *peer)
		took   time.Duration
	}{
		"in time": {func(p *peer) {
			p.answer(p.expect("_bus-agent/nothing"), `{}`)
			p.answer(p.expect("_bus-agent/nothing"), `{}`)
		}, 0},
		"in pieces": {func(p *peer) {
			for range 5 {
				m := p.expect("_bus-agent/nothing")
				p.chunk("history")
				p.refuse(m, -32601, "unknown")
			}
			p.refuse(p.expect("_bus-agent/nothing"), -32601, "unknown")
		}, 0},
		"no answer": {func(p *peer) {
			p.expect("_bus-agent/nothing")
			p.chunk("history")
		}, 5 * time.Second},
		"no end": {func(p *peer) {
			for range 4 {
				m := p.expect("_bus-agent/nothing")
				p.chunk("history")
				time.Sleep(1500 * time.Millisecond)
				p.refuse(m, -32601, "unknown")
			}
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, transport := newPeer(t)
				r := newRecord(t)
				settled := make(chan struct{})
				go func() {
					defer close(settled)
					p.answer(p.expect("initialize"), greeting)
					m := p.expect("session/load")
					p.update(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"history"}}`)
					p.answer(m, `{}`)
					synctest.Wait() // the engine asks whether there is more
					p.chunk("history")
					p.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"completed"}`)
					test.settle(p)
				}()
				e := &acp.Engine{}
				begun := time.Now()
				if _, err := e.Open(t.Context(), transport, engine.Start{Resume: "s"}, r); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("it takes %v", took)
				}
				<-settled
				m := send(t, e, p, "go")
				p.chunk("now")
				p.answer(m, `{"stopReason":"end_turn"}`)
				p.end()
				<-r.closed
				check(t, r, "session_started s", "text now", "result")
			})
		})
	}
}

func TestAgentThatEndsWhileItsHistoryComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		go func() {
			p.answer(p.expect("initialize"), greeting)
			p.answer(p.expect("session/load"), `{}`)
			p.expect("_bus-agent/nothing")
			p.end()
		}()
		begun := time.Now()
		_, err := (&acp.Engine{}).Open(t.Context(), transport, engine.Start{Resume: "s"}, r)
		<-r.closed
		if took := time.Since(begun); took > 0 || err == nil {
			t.Error(took, err)
		}
	})
}
