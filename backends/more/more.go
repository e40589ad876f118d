package more

import (
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// catalogue lists the runtimes in the order of their IDs.
var catalogue = []struct {
	id       string
	describe func() registry.Runtime
}{
	{"claude-agent-acp", claudeAgentACP},
	{"claude-code-acp", claudeCodeACP},
	{"cline", cline},
	{"codex-acp", codexACP},
	{"copilot", copilot},
	{"droid", droid},
	{"opencode", opencode},
	{"pi", pi},
	{"qwen", qwen},
}

func init() {
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
