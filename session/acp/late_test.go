package acp_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// The user is not asked for approval once the turn was interrupted.
func TestApprovalRequestAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		prompt := send(t, e, p, "go")
		go e.Interrupt(t.Context())
		p.expect("session/cancel")
		synctest.Wait() // Interrupt has returned
		p.ask(0, "t")
		synctest.Wait()
		if e.Opened("1") {
			t.Error("the request is open")
		} else if m := p.expect(""); string(m.Result) != cancelled {
			t.Errorf("the agent gets %s", m.Result)
		}
		p.answer(prompt, `{"stopReason":"cancelled"}`)
		if e.Opened("1") {
			p.expect("")
		}
		p.end()
		<-r.closed
		check(t, r, "session_started s", "result failed interrupted")
	})
}

// An approval request that an interrupt withdraws is passed on before it is reported as
// answered. The race detector must find nothing.
func TestApprovalRequestDuringAnInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		prompt := send(t, e, p, "go")
		p.ask(0, "t")
		for !e.Opened("1") {
			runtime.Gosched()
		}
		go e.Interrupt(t.Context())
		p.expect("session/cancel")
		if m := p.expect(""); string(m.Result) != cancelled {
			t.Errorf("the agent gets %s", m.Result)
		}
		synctest.Wait()
		check(t, r, "session_started s", asked, "answered 1")
		p.answer(prompt, `{"stopReason":"cancelled"}`)
		p.end()
		<-r.closed
		if !strings.HasSuffix(r.String(), "result failed interrupted") {
			t.Error(r)
		}
	})
}
