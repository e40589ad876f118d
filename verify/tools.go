package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

func hasAllowTools(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.AllowTools, "the runtime takes no list of allowed tools; a request with one is refused")
}

func hasDenyTools(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.DenyTools, "the runtime takes no denied tools; a request with one is refused")
}

func hasSessionAllowTools(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session.Options.AllowTools, "the sessions of the runtime take no list of allowed tools; a request with one is refused")
}

func hasSessionDenyTools(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session.Options.DenyTools, "the sessions of the runtime take no denied tools; a request with one is refused")
}

// allowsOne requests only the first tool of the target.
func allowsOne(t *Target, req *agent.Request) { req.AllowTools = t.Tools[:1] }

// deniesOne requests all tools but the first of the target.
func deniesOne(t *Target, req *agent.Request) { req.DenyTools = t.Tools[:1] }

// allowsEdit requests only the tool that edits files.
func allowsEdit(t *Target, req *agent.Request) { req.AllowTools = []string{t.Edit("/x").Name} }

// tools checks which tools the model is offered in a run without a list, and in one with
// the list that limit sets.
func tools(limit func(*Target, *agent.Request)) func(*trial) error {
	return func(t *trial) error {
		return t.offers(limit, func(req agent.Request) error {
			_, err := t.ask(req, "done")
			return err
		})
	}
}

// sessionTools is tools for sessions.
func sessionTools(limit func(*Target, *agent.Request)) func(*trial) error {
	return func(t *trial) error {
		return t.offers(limit, func(req agent.Request) error {
			req.Access = t.supported(agent.AccessWrite, agent.AccessRead)
			s, err := t.open(agent.Request{Access: req.Access, AllowTools: req.AllowTools, DenyTools: req.DenyTools},
				func(session.Approval) session.Decision { return session.Decline })
			if err != nil {
				return err
			}
			defer s.Stop(context.WithoutCancel(t.ctx), "the check is over")
			return t.say(s, req.Prompt, "done")
		})
	}
}

func (t *trial) offers(limit func(*Target, *agent.Request), do func(agent.Request) error) error {
	if len(t.target.Tools) < 2 {
		return errors.New("Target.Tools names no two tools")
	}
	if err := t.start(modeltest.Always(says("done")), nil); err != nil {
		return err
	}
	req := agent.Request{Prompt: "hello"}
	if err := do(req); err != nil {
		return err
	}
	all := len(t.model.ModelRequests())
	if offered := toolsOf(t.model.ModelRequests()); !slices.Contains(offered, t.target.Tools[0]) || !slices.Contains(offered, t.target.Tools[1]) {
		return fmt.Errorf("without a list the model is offered %s, want %s too", quote(strings.Join(offered, " ")), strings.Join(t.target.Tools, " and "))
	}
	limit(&t.target, &req)
	if err := do(req); err != nil {
		return fmt.Errorf("with a list of tools: %w", err)
	}
	offered := toolsOf(t.model.ModelRequests()[all:])
	switch first := slices.Contains(offered, t.target.Tools[0]); {
	case req.AllowTools != nil && (!first || len(offered) > 1), req.DenyTools != nil && first:
		return fmt.Errorf("the model is offered %s", quote(strings.Join(offered, " ")))
	case req.DenyTools != nil && !slices.Contains(offered, t.target.Tools[1]):
		return fmt.Errorf("the model is offered %s, without the tool %s, which is not denied", quote(strings.Join(offered, " ")), t.target.Tools[1])
	}
	return nil
}

// toolsOf returns the names of all tools of requests, sorted.
func toolsOf(list []*modeltest.Request) (names []string) {
	for _, r := range list {
		names = append(names, r.Tools()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// allowedEdit checks that an allowed tool does no more than the access permits. Some runtimes
// refuse a list with tools that the access leaves out.
func allowedEdit(t *trial) error {
	if k := t.takes[layoutTake]; !k.started && errors.Is(k.err, agent.ErrUsage) {
		return nil
	}
	return did(readEdit, false)(t)
}
