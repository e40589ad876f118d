package cursor

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// command builds the argument list. The ID of a session is joined to its option
// with "=", because the option's value is optional.
func command(inv registry.Invocation) (agent.Command, error) {
	args := append([]string{"-p", "--output-format", "stream-json", "--trust"}, options(inv)...)
	args = append(args, inv.Args...)
	return agent.Command{
		Args:  args,
		Stdin: inv.Prompt,
	}, nil
}

// options returns what a run and the interactive CLI share.
func options(inv registry.Invocation) []string {
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
	} else if inv.Continue {
		args = append(args, "--continue")
	}
	return args
}

func accessArgs(access agent.Access) []string {
	switch access {
	case agent.AccessRead:
		return []string{"--mode", "ask"}
	case agent.AccessFull:
		return []string{"--force", "--sandbox", "disabled"}
	default:
		return []string{"--force", "--sandbox", "enabled"}
	}
}
