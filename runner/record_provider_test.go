package runner_test

import (
	"context"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

type recorderFunc func(context.Context, agent.Recordable) (agent.Recording, error)

func (f recorderFunc) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	return f(ctx, run)
}

// A variant of a runtime can use the model of another provider.
func TestRecorderIsToldTheProvider(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"beta": "acme", "beta:local": ""} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "beta")
			told := "nothing"
			b.Recorder = recorderFunc(func(_ context.Context, run agent.Recordable) (agent.Recording, error) {
				told = run.Provider
				return agent.Recording{}, nil
			})
			req := b.request("say ok:")
			req.Runtime = token
			if _, err := b.Run(t.Context(), req, agent.Output{}); err != nil || told != want {
				t.Errorf("the recorder was told %q, %v; want %q", told, err, want)
			}
		})
	}
}
