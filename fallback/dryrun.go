package fallback

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// A Candidate is a runtime that Run may try.
type Candidate struct {
	Runtime string `json:"runtime"` // token; empty for a first one where none is available
	// Skipped says why Run would not try it now; empty where it would.
	Skipped string `json:"skipped,omitempty"`
}

// DryRun does everything Run does before it writes a file or starts a process, and
// returns what the first run would be and what may be tried in all, in order. There
// are no candidates where Run would be a plain one. The errors are those of Run.
func (f *Chain) DryRun(ctx context.Context, req agent.Request) (runner.DryRun, []Candidate, error) {
	c := f.newCall()
	all, err := c.settle(ctx, req)
	if err != nil {
		return runner.DryRun{}, nil, err
	}
	if all == nil {
		plan, err := c.loud.DryRun(ctx, req)
		return plan, nil, err
	}
	at, _ := all.next(-1)
	if all[at].problem != "" {
		if next, _ := all.next(at); next >= 0 {
			at = next
		}
	}
	var list []Candidate
	awake := all.ready()
	for i := range all {
		list = append(list, Candidate{all[i].token, all[i].skipped(awake)})
	}
	plan, err := all[at].runner.DryRun(ctx, all[at].req)
	return plan, list, err
}
