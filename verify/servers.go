package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

const (
	serverName  = "verify"
	toolMessage = "recall the word"
	toolWord    = "marble"
	toolNote    = "a note with 'quotes' and é"
)

func hasServers(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.MCPServers, "the runtime takes no MCP servers; a request with one is refused")
}

func hasSessionServers(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session.Options.MCPServers, "the sessions of the runtime take no MCP servers; a request with one is refused")
}

// serverRequest returns a request with the MCP server of the options.
func (t *trial) serverRequest() (agent.Request, error) {
	command := t.options.ToolServer
	if len(command) == 0 {
		return agent.Request{}, errors.New("Options.ToolServer names no program")
	}
	return agent.Request{Model: t.target.ServerModel, MCPServers: []agent.MCPServer{{
		Name: serverName, Command: command[0], Args: command[1:], Env: map[string]string{toolVariable: toolNote},
	}}}, nil
}

// callsTool is a script whose model calls the tool of the server once.
func (t *trial) callsTool(r *modeltest.Request) modeltest.Reply {
	done := len(r.ToolResults())
	if t.target.ServerCalls != nil {
		if calls := t.target.ServerCalls(serverName, toolName, `{"word":"`+toolWord+`"}`); done < len(calls) {
			return modeltest.Reply{calls[done]}
		}
		return says("done")
	}
	if done > 0 || !strings.Contains(lastText(r), toolMessage) {
		return says("done")
	}
	for _, name := range r.Tools() {
		if strings.Contains(name, toolName) {
			return modeltest.Reply{modeltest.ToolCall{Name: name, Arguments: `{"word":"` + toolWord + `"}`}}
		}
	}
	return says("done")
}

// toolWorked checks that the model was offered the tool, and got its result.
func (t *trial) toolWorked() error {
	offered := ""
	for _, r := range t.model.ModelRequests() {
		for _, result := range r.ToolResults() {
			if strings.Contains(result.Output, recalled(toolWord, toolNote)) {
				return nil
			}
			offered = fmt.Sprintf("; its call was answered with %s", quote(result.Output))
		}
	}
	for _, r := range t.model.ModelRequests() {
		if names := strings.Join(r.Tools(), " "); offered == "" {
			offered = fmt.Sprintf("; the model was offered %s", quote(names))
		}
	}
	return errors.New("the result of the server's tool did not reach the model" + offered)
}

// servers checks a run with an MCP server.
func servers(t *trial) error {
	req, err := t.serverRequest()
	if err != nil {
		return err
	}
	if err := t.start(t.callsTool, nil); err != nil {
		return err
	}
	req.Prompt, req.Access = toolMessage, agent.AccessWrite
	if hasAccess(agent.AccessWrite)(&t.target, &t.runtime) != "" {
		req.Access = ""
	}
	if o := t.run(t.ctx, req); o.err != nil {
		return fmt.Errorf("the run failed: %w%s", o.err, lastLine(o.err))
	}
	if err := t.toolWorked(); err != nil {
		return err
	}
	return t.checkProcesses()
}

// sessionServers checks a session with an MCP server, whose approval requests are accepted.
func sessionServers(t *trial) error {
	req, err := t.serverRequest()
	if err != nil {
		return err
	}
	if err := t.start(t.callsTool, nil); err != nil {
		return err
	}
	req.Access = t.supported(agent.AccessWrite, agent.AccessRead)
	s, err := t.open(req, func(session.Approval) session.Decision { return session.Accept })
	if err != nil {
		return err
	}
	defer s.Stop(context.WithoutCancel(t.ctx), "the check is over")
	if err := t.say(s, toolMessage, "done"); err != nil {
		return err
	}
	if err := t.toolWorked(); err != nil {
		return err
	}
	s.Stop(t.ctx, "the check is over")
	select {
	case <-s.Done():
	case <-t.ctx.Done():
		return errors.New("the session did not end")
	}
	return t.checkProcesses()
}
