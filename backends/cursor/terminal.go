package cursor

import (
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// interactive describes the Cursor CLI in a terminal. Its screen is not known, so it gets
// a fixed time to start.
func interactive() *registry.Terminal {
	return &registry.Terminal{
		Terminal: engine.Terminal{WarmUp: 5 * time.Second, SpaceLast: true},
		Use:      registry.Use{Options: conversation().Options, Prepare: prepare, Command: interactiveCommand},
		Resume:   registry.ResumeFlag,
	}
}

func interactiveCommand(inv registry.Invocation) (agent.Command, error) {
	return agent.Command{Args: append(options(inv), inv.Args...)}, nil
}
