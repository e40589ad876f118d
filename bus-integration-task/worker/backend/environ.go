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

// withoutCredentials returns environ without the worker's own credentials, which an
// agent could use to publish events in the worker's name.
func withoutCredentials(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), isCredential)
}

func isCredential(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return strings.HasPrefix(name, "BUS_") && slices.ContainsFunc([]string{"_KEY", "_TOKEN", "_TOKEN_FILE", "_SECRET"}, func(suffix string) bool {
		return strings.HasSuffix(name, suffix)
	})
}

// A maskingRecorder masks secrets that the agent does not have in its environment: a user
// or a file may have told it.
type maskingRecorder struct {
	agent.Recorder
	environ []string
}

func (r maskingRecorder) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	for _, entry := range r.environ {
		if isCredential(entry) {
			run.Environ = append(slices.Clip(run.Environ), entry)
		}
	}
	return r.Recorder.Record(ctx, run)
}
