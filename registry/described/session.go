package described

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
)

// converse makes rt one that holds sessions and does not run once.
func (d *Definition) converse(rt *registry.Runtime) error {
	if d.Prompt != promptByStdin {
		return fmt.Errorf("prompt: %q is of no use with output %q, which has messages instead", d.Prompt, outputACP)
	}
	if d.has(holdResume) {
		return fmt.Errorf("args: %s is of no use with output %q, which resumes by a message", holdResume, outputACP)
	}
	rt.Options.Resume = true
	rt.Session = &registry.Session{
		Command:  d.agent,
		Engine:   d.engine,
		Protocol: outputACP,
		Delivery: session.DeliverRPC,
		Options:  rt.Options,
	}
	rt.Command = func(agent.Request) (agent.Command, error) {
		return agent.Command{}, agent.Usagef("%s holds sessions and cannot run once; start a session with it; nothing was started", d.Name)
	}
	return nil
}

// agent builds the invocation of an agent that speaks the protocol.
func (d *Definition) agent(r agent.Request) (agent.Command, error) {
	r.Prompt, r.Resolved.Setup.Prefix = "", ""
	command, err := d.command(r)
	command.Stdin = ""
	return command, err
}

func (d *Definition) engine(agent.Request) session.Engine {
	e := &acp.Engine{Permits: func(access agent.Access, _ string) bool { return access == agent.AccessFull }}
	if !d.SlashCommands {
		e.Guard = func(text string) []string { return []string{text} }
	}
	return e
}
