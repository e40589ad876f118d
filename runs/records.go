package runs

import (
	"github.com/busdk/bus-agent/agent"
)

// Records is a folder of records. Its methods may be called concurrently, also by
// several processes over one folder.
type Records struct {
	// Root is the folder, absolute. It is made when the first run is recorded.
	Root string

	// Required makes it an error when a run cannot be recorded: it is not started,
	// or ended. Otherwise it is a warning, and the run goes on.
	Required bool

	// Preamble tells the agent of its record: the prompt is preceded by the
	// preamble of the Agent Protocol, which names the folders and asks for
	// output.md. Sessions do without.
	Preamble bool

	// AgentVersion asks the agent's CLI for its version while the run goes on,
	// which starts one more process.
	AgentVersion bool
}

// DefaultRoot returns the folder of a user's records: bus-agent/runs in
// XDG_STATE_HOME, which is ~/.local/state where it is not set.
func DefaultRoot(environ []string) (string, error) {
	return agent.StateDir(environ, "runs")
}
