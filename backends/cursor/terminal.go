package cursor

import (
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

// interactive is how the Cursor CLI is held in a terminal. What it shows is not
// known, so it is given time.
func interactive() *registry.Terminal {
	return &registry.Terminal{
		Terminal: session.Terminal{WarmUp: 5 * time.Second, SpaceLast: true},
		Command:  interactiveCommand,
		Resume:   registry.ResumeFlag,
		Options:  conversation().Options,
	}
}

func interactiveCommand(r agent.Request) (agent.Command, error) {
	var args []string
	if r.Resolved.Root != "" {
		args = append(args, "--workspace", r.Resolved.Root)
	}
	args = append(args, accessArgs(r.Access)...)
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if id := r.Resolved.Setup.ResumeID; id != "" {
		args = append(args, "--resume="+id)
	}
	args = append(args, r.Resolved.Setup.Args...)
	return agent.Command{Args: append(args, r.Args...)}, nil
}
