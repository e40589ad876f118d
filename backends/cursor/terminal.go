package cursor

import (
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// interactive is how the Cursor CLI is held in a terminal. What it shows is not
// known, so it is given time.
func interactive() *registry.Terminal {
	return &registry.Terminal{
		Terminal: engine.Terminal{WarmUp: 5 * time.Second, SpaceLast: true},
		Use:      registry.Use{Options: conversation().Options, Prepare: prepare, Command: interactiveCommand},
		Resume:   registry.ResumeFlag,
	}
}

func interactiveCommand(inv registry.Invocation) (agent.Command, error) {
	var args []string
	if inv.Root != "" {
		args = append(args, "--workspace", inv.Root)
	}
	args = append(args, accessArgs(inv.Access)...)
	if inv.Model != "" {
		args = append(args, "--model", inv.Model)
	}
	if inv.Resume != "" {
		args = append(args, "--resume="+inv.Resume)
	}
	return agent.Command{Args: append(args, inv.Args...)}, nil
}
