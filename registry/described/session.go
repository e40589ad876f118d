package described

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// converse makes rt one that holds sessions and does not run once.
func (d *Definition) converse(rt *registry.Runtime) error {
	if d.Prompt != promptByStdin {
		return fmt.Errorf("prompt: %q is of no use with output %q, which has messages instead", d.Prompt, outputACP)
	}
	if d.has(holdResume) {
		return fmt.Errorf("args: %s is of no use with output %q, which resumes by a message", holdResume, outputACP)
	}
	rt.Run.Options.Resume = true
	rt.Run.Command = d.agent
	rt.Session = &registry.Session{
		Use:      rt.Run,
		Engine:   d.engine,
		Protocol: outputACP,
		Delivery: engine.DeliverRPC,
	}
	rt.Run = registry.Use{}
	return nil
}

// agent builds the command of an agent that speaks the protocol.
func (d *Definition) agent(inv registry.Invocation) (agent.Command, error) {
	inv.Prompt = ""
	return d.command(inv)
}

func (d *Definition) engine(registry.Invocation) engine.Engine {
	return &acp.Engine{Permits: func(access agent.Access, _ string) bool { return access == agent.AccessFull }}
}
