package cmdline

import (
	"cmp"

	"github.com/busdk/bus-agent/runs"
)

// EnvRunsRoot is the variable for --runs-root.
const EnvRunsRoot = "BUS_AGENT_RUNS_ROOT"

// RunsRoot returns the folder of records: asked, or else that of the environment, that of
// the recorded run in which this program runs, or that of the user.
func (prog *Program) RunsRoot(asked string) (string, error) {
	if dir := cmp.Or(asked, prog.Env.Getenv(EnvRunsRoot)); dir != "" {
		return prog.Env.Abs(dir), nil
	}
	if root, _, ok := runs.Outer(prog.Env.Environ); ok {
		return root, nil
	}
	return runs.DefaultRoot(prog.Env.Environ)
}
