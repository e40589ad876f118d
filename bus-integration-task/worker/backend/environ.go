package backend

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// inherited returns environ, or that of the process if it is nil.
func inherited(environ []string) []string {
	if environ == nil {
		return os.Environ()
	}
	return slices.Clone(environ)
}

// credentials returns the worker's own credentials in environ, and the rest. An agent
// could use them to publish events in the worker's name.
func credentials(environ []string) (own, rest []string) {
	for _, entry := range environ {
		if isCredential(entry) {
			own = append(own, entry)
		} else {
			rest = append(rest, entry)
		}
	}
	return own, rest
}

func isCredential(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return strings.HasPrefix(name, "BUS_") && slices.ContainsFunc([]string{"_KEY", "_TOKEN", "_TOKEN_FILE", "_SECRET"}, func(suffix string) bool {
		return strings.HasSuffix(name, suffix)
	})
}

// A maskingRecorder masks secrets that the agent does not have in its environment: a user
// or a file may have given it.
type maskingRecorder struct {
	agent.Recorder
	secrets []string // as in an environment
}

func (r maskingRecorder) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	run.Environ = slices.Concat(run.Environ, r.secrets)
	return r.Recorder.Record(ctx, run)
}
