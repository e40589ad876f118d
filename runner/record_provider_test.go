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
func TestRecorderGetsTheProvider(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"beta": "acme", "beta:local": ""} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "beta")
			got := "nothing"
			b.Recorder = recorderFunc(func(_ context.Context, run agent.Recordable) (agent.Recording, error) {
				got = run.Provider
				return agent.Recording{}, nil
			})
			req := b.request("say ok:")
			req.Runtime = token
			if _, err := b.Run(t.Context(), req, agent.Output{}); err != nil || got != want {
				t.Errorf("the recorder got %q, %v; want %q", got, err, want)
			}
		})
	}
}
