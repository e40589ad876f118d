package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// Preferences are persistent defaults. preferences.User returns those of the user.
type Preferences interface {
	// Get returns the JSON value of key and whether it is set.
	Get(ctx context.Context, key string) (value json.RawMessage, ok bool, err error)
}

// A Snapshotter is a Preferences of which all keys can be read at once. A Runner uses
// it, so that one operation sees one state of the preferences.
type Snapshotter interface {
	Snapshot(ctx context.Context) (Preferences, error)
}

// A Runner detects, selects and runs agents. The zero value uses the default
// registry, the environment of the process and no preferences, and warns on
// standard error. Its methods may be called by several goroutines at once while
// its fields do not change.
type Runner struct {
	Registry    *registry.Registry // nil: registry.Default()
	Preferences Preferences        // nil: none
	Sources     *Sources           // nil: BusAgent()
	Environ     []string           // "NAME=value"; nil: os.Environ()

	// CallName is what warnings call the runtime that a request names, such as the
	// flag "--agent"; "" is "runtime".
	CallName string

	// Order, Enable and Disable list runtime IDs. One that is not nil wins over
	// its variable and preference.
	Order, Enable, Disable []string

	// RequireConfigured makes it an agent.ErrNoneAvailable error if no source names
	// a runtime, instead of taking the first available one.
	RequireConfigured bool

	// Workdir and TrustWorkspace are for Detect and Resolve: an executable inside the
	// repository of Workdir, by default the current directory, is refused unless
	// TrustWorkspace is set. All other methods use the fields of the request.
	Workdir        string
	TrustWorkspace bool

	// OpenTerminal runs what is asked for in session.ModeTmux. Nil means what is
	// registered, which package session/tmux is when it is imported.
	OpenTerminal engine.OpenTerminal

	// Recorder records every run and session; nil records none. See package runs.
	Recorder agent.Recorder

	// Warn receives each warning as one line without prefix or line break. Nil
	// writes it to standard error after "bus-agent: ". It is called on the
	// goroutine of the method that warns and, while an agent runs, on others.
	Warn func(string)

	silence    time.Duration // set by tests; see resultSilence
	unreached  time.Duration // set by tests; see unreachedDelay
	unanswered time.Duration // set by tests; see unansweredDelay
	entries    int           // set by tests; see tree.SurveyEntries
}

func (r *Runner) registry() *registry.Registry {
	if r.Registry != nil {
		return r.Registry
	}
	return registry.Default()
}

func (r *Runner) environ() []string {
	if r.Environ != nil {
		return r.Environ
	}
	return os.Environ()
}

func (r *Runner) sources() Sources {
	if r.Sources != nil {
		return *r.Sources
	}
	return ownSources()
}

// ownSources are the default sources, which are not changed.
var ownSources = sync.OnceValue(BusAgent)

func (r *Runner) warn(line string) {
	line = oneLine(line)
	if r.Warn != nil {
		r.Warn(line)
		return
	}
	fmt.Fprintf(os.Stderr, "bus-agent: %s\n", line)
}

// oneLine returns text, which can quote file names or an agent, as one printable line.
func oneLine(text string) string {
	return strings.ReplaceAll(formatters.SanitizeString(text), "\n", " ")
}
