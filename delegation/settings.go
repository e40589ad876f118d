package delegation

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// The defaults of [Settings].
const (
	DefaultDepth        = 1
	DefaultRuns         = 100
	DefaultConcurrent   = 4
	DefaultTimeout      = 30 * time.Minute
	DefaultTotalTimeout = 8 * time.Hour
	DefaultOutput       = 64 << 10
)

// Settings are what a [Broker] may do. The zero value is usable. A bound of zero is its
// default.
type Settings struct {
	// Runner runs the agents. Nil means the zero Runner.
	Runner *runner.Runner

	// Store is where the sessions are kept. Nil means the state folder of the user.
	Store *control.Store

	// Record says how runs and sessions are recorded; nil means that they are not.
	Record *control.RecordSettings

	// RunsRoot is the folder of the records that the caller can read. Empty means none.
	RunsRoot string

	// Workdir is the folder outside which no agent works. Empty means the current
	// directory.
	Workdir string

	// Access is the most that an agent may be given. Empty means agent.AccessRead.
	Access agent.Access

	// Depth is how many levels of agents can be below the caller: 1 means that the
	// agents it starts cannot start others.
	Depth int

	// Approve lets the caller accept approval requests of agents in sessions. Without it
	// they are declined, unless the caller asks its user: see [Broker.Start].
	Approve bool

	// Runs bounds how many runs and messages there can be, Concurrent how many agents at a
	// time. A session has an agent until it ends.
	Runs, Concurrent int

	// Timeout bounds one run or turn, TotalTimeout the sum of all.
	Timeout, TotalTimeout time.Duration

	// Output bounds each text that the caller gets, in bytes.
	Output int
}

// settle returns s with its defaults and an absolute Workdir without links.
func (s Settings) settle() (Settings, error) {
	if s.Runner == nil {
		s.Runner = &runner.Runner{}
	}
	s.Access = cmp.Or(s.Access, agent.AccessRead)
	if _, err := agent.ParseAccess(string(s.Access)); err != nil {
		return s, err
	}
	if s.Depth < 0 || s.Runs < 0 || s.Concurrent < 0 || s.Timeout < 0 || s.TotalTimeout < 0 || s.Output < 0 {
		return s, agent.Usagef("a bound of a delegation is negative")
	}
	s.Depth = cmp.Or(s.Depth, DefaultDepth)
	s.Runs = cmp.Or(s.Runs, DefaultRuns)
	s.Concurrent = cmp.Or(s.Concurrent, DefaultConcurrent)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.TotalTimeout = cmp.Or(s.TotalTimeout, DefaultTotalTimeout)
	s.Output = cmp.Or(s.Output, DefaultOutput)
	dir, err := realDirectory(cmp.Or(s.Workdir, "."))
	if err != nil {
		return s, agent.Usagef("workdir %q: %w", s.Workdir, err)
	}
	s.Workdir = dir
	return s, nil
}

// environ returns the environment of the runner.
func (s *Settings) environ() []string {
	if s.Runner.Environ != nil {
		return s.Runner.Environ
	}
	return os.Environ()
}

// realDirectory returns the absolute path of a directory, without links.
func realDirectory(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = errNotDirectory
	}
	return real, err
}
