package runs

import "github.com/busdk/bus-agent/internal/statefile"

// Records is a folder of records. Its methods may be called concurrently, also by several
// processes on one folder.
type Records struct {
	// Root is the folder, absolute. The first recorded run creates it.
	Root string

	// Required makes a failed record an error, which ends the run. Otherwise it is a
	// warning, and the run continues.
	Required bool

	// Preamble puts the preamble of the Agent Protocol before the prompt of a run,
	// which names the folders and asks for output.md. Sessions have none.
	Preamble bool

	// AgentVersion records the version of the agent's CLI, which starts one more
	// process during the run.
	AgentVersion bool
}

// DefaultRoot returns the folder of a user's records: bus-agent/runs in XDG_STATE_HOME or,
// without that, in ~/.local/state.
func DefaultRoot(environ []string) (string, error) {
	return statefile.UserDir(environ, "runs")
}
