package more

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// catalogue lists the runtimes in the order of their IDs.
var catalogue = []struct {
	id       string
	describe func() registry.Runtime
}{
	{"claude-agent-acp", claudeAgentACP},
	{"cline", cline},
	{"codex-acp", codexACP},
	{"copilot", copilot},
	{"droid", droid},
	{"opencode", opencode},
	{"pi", pi},
	{"qwen", qwen},
}

// unsupported lists CLIs that cannot be runtimes, and why.
var unsupported = []struct{ id, reason string }{
	{"amp", "it works only with a login to its service, so nothing it does can be verified"},
	{"auggie", "it works only with a login to its service, so nothing it does can be verified"},
	{"cn", "version 1.5.47 reports no session, tools and tokens, and reads AGENTS.md of one folder only"},
	{"kilo", "most runs of version 7.7.9 sent their model nothing for 100 seconds, so it is not verified"},
}

func init() {
	for _, cli := range unsupported {
		registry.Default().Refuse(cli.id, fmt.Errorf(`%s; describe it with "bus-agent set runtime-definition %s" if you accept that`, cli.reason, cli.id))
	}
	for _, rt := range catalogue {
		registry.RegisterFunc(rt.id, rt.describe)
	}
}

// define returns the runtime of a definition.
func define(id string, d described.Definition) registry.Runtime {
	rt, err := described.New(id, d, nil)
	if err != nil {
		panic(err) // a test describes all
	}
	rt.LastChoice = true
	return rt
}

// attachBy lets the runs of rt pass images to the model: arg, with the path of the file at
// its end, goes before the other arguments of the caller.
func attachBy(rt *registry.Runtime, arg string, types ...string) {
	rt.Run.Options.Attachments, rt.Run.Options.AttachmentFiles = types, true
	command := rt.Run.Command
	rt.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
		args := make([]string, 0, len(inv.Attachments)+len(inv.Args))
		for _, a := range inv.Attachments {
			args = append(args, arg+a.Path)
		}
		inv.Args = append(args, inv.Args...)
		return command(inv)
	}
}
