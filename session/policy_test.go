package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// byKind is a policy with a decision for each kind.
type byKind map[agent.ToolKind]string

func (p byKind) Decide(tool *agent.Tool, _ engine.Start) agent.PolicyAnswer {
	return agent.PolicyAnswer{Decision: p[tool.Kind], Rule: 1}
}

func (p *peer) requestKind(id string, kind agent.ToolKind) {
	p.sink.Event(&agent.Event{Kind: agent.KindApproval, ApprovalID: id, Tool: &agent.Tool{Name: "t", Kind: kind}})
}

// The policy answers before the user. What it leaves is asked as without one.
func TestPolicyAnswers(t *testing.T) {
	t.Parallel()
	rules := byKind{agent.ToolRead: "accept", agent.ToolExecute: "accept", agent.ToolEdit: "decline", agent.ToolFetch: "ask"}
	for name, test := range map[string]struct {
		access  agent.Access
		kind    agent.ToolKind
		answers string // of the policy and, after "asked", of the user
		event   string // its ID, whether it failed, and the policy's answer
	}{
		"accept":            {agent.AccessWrite, agent.ToolExecute, "[1 accept]", ` false &{accept 1}`},
		"decline":           {agent.AccessWrite, agent.ToolEdit, "[1 decline]", ` true &{decline 1}`},
		"ask":               {agent.AccessWrite, agent.ToolFetch, "[1 accept_for_session]", `1 false <nil>`},
		"no decision":       {agent.AccessWrite, agent.ToolOther, "[1 accept_for_session]", `1 false <nil>`},
		"a read with read":  {agent.AccessRead, agent.ToolRead, "[1 accept]", ` false &{accept 1}`},
		"more than read":    {agent.AccessRead, agent.ToolExecute, "[1 accept_for_session]", `1 false <nil>`},
		"decline with read": {agent.AccessRead, agent.ToolEdit, "[1 decline]", ` true &{decline 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &peer{sent: make(chan string, 1), done: make(chan struct{})}
				var events []string
				o := session.Options{
					Policy:  rules,
					Approve: func(context.Context, session.Approval) session.Decision { return session.AcceptForSession },
					Events: func(e *agent.Event) error {
						events = append(events, fmt.Sprintf("%s %v %v", e.ApprovalID, e.Failed, e.Policy))
						return nil
					},
				}
				s, err := session.Open(t.Context(), "test", p, p, engine.Transport{}, engine.Start{Access: test.access}, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop(context.Background(), "")
				s.Send(session.Message{Text: "go"})
				<-p.sent
				p.requestKind("1", test.kind)
				synctest.Wait()
				if got := p.answered(); got != test.answers || !slices.Equal(events, []string{test.event}) {
					t.Errorf("the agent gets %s, the user %q", got, events)
				}
				if n := len(s.Approvals()); n > 0 || s.State() != session.StateRunning {
					t.Errorf("%d requests are open, state %s", n, s.State())
				}
			})
		})
	}
}

// Nothing is accepted in a turn that is to end, and the policy does not answer an agent
// that does not read.
func TestPolicyLeavesToTheUser(t *testing.T) {
	t.Parallel()
	t.Run("after an interrupt", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			s := open(t, p, session.Options{Policy: byKind{agent.ToolExecute: "accept"}})
			defer s.Stop(context.Background(), "")
			s.Send(session.Message{Text: "go"})
			<-p.sent
			if err := s.Interrupt(t.Context()); err != nil {
				t.Error(err)
			}
			p.requestKind("1", agent.ToolExecute)
			synctest.Wait()
			if got := p.answered(); got != "[]" || len(s.Approvals()) != 1 {
				t.Errorf("the agent gets %s", got)
			}
		})
	})
	t.Run("a deaf agent", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			d := &deafEngine{peer: p, release: make(chan struct{})}
			s := openWith(t, d, p, session.Options{Policy: byKind{agent.ToolExecute: "decline"}})
			defer s.Stop(context.Background(), "")
			s.Send(session.Message{Text: "go"})
			<-p.sent
			for i := range engine.MaxApprovals + 3 {
				p.requestKind(fmt.Sprint(i), agent.ToolExecute)
			}
			if n := len(s.Approvals()); n != 3 {
				t.Errorf("%d requests are left to the user", n)
			}
			close(d.release)
			synctest.Wait()
			p.requestKind("again", agent.ToolExecute)
			if n := len(s.Approvals()); n != 3 {
				t.Errorf("%d requests are left to the user once the agent reads", n)
			}
		})
	})
}

// deafEngine takes no answer until it is released.
type deafEngine struct {
	*peer
	release chan struct{}
}

func (d *deafEngine) Answer(ctx context.Context, id string, decision session.Decision) error {
	<-d.release
	return d.peer.Answer(ctx, id, decision)
}

// adjustable is a peer whose access can be changed.
type adjustable struct{ *peer }

func (adjustable) SetModel(context.Context, string) error        { return nil }
func (adjustable) SetAccess(context.Context, agent.Access) error { return nil }

// The access counts that the session has when the agent asks. With full access nothing
// would be asked.
func TestPolicyFollowsTheAccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := openWith(t, adjustable{p}, p, session.Options{Policy: byKind{agent.ToolExecute: "accept"}})
		defer s.Stop(context.Background(), "")
		if err := s.SetAccess(t.Context(), agent.AccessFull); !errors.Is(err, agent.ErrUsage) {
			t.Error(err)
		}
		for _, access := range []agent.Access{agent.AccessRead, agent.AccessWrite} {
			if err := s.SetAccess(t.Context(), access); err != nil {
				t.Error(err)
			}
			p.requestKind(string(access), agent.ToolExecute)
			synctest.Wait()
		}
		if got := p.answered(); got != "[write accept]" || len(s.Approvals()) != 1 {
			t.Errorf("the agent gets %s", got)
		}
	})
}

// An answer whose caller has given up is not taken before, and delivered after it was.
func TestAnswersOfCallersThatGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &deafEngine{peer: &peer{}, release: make(chan struct{})}
		s := openWith(t, d, d.peer, session.Options{})
		s.Send(session.Message{Text: "go"})
		<-d.sent
		d.request("q")
		ctx, cancel := context.WithCancel(t.Context())
		gone, end := context.WithCancel(t.Context())
		end()
		if err := s.Answer(gone, "q", session.Accept); !errors.Is(err, context.Canceled) || len(s.Approvals()) != 1 {
			t.Errorf("%v, open: %v", err, s.Approvals())
		}
		go func() {
			synctest.Wait()
			cancel()
		}()
		if err := s.Answer(ctx, "q", session.Accept); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(d.release)
		synctest.Wait()
		if got := d.answered(); got != "[q accept]" {
			t.Errorf("answered %s", got)
		}
		s.Stop(t.Context(), "")
	})
}
