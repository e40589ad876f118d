package fallback

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// A Candidate is a runtime that Run may try.
type Candidate struct {
	Runtime string `json:"runtime"` // token; empty for the first one if none is available
	// Skipped is why Run would not try it now; empty if it would.
	Skipped string `json:"skipped,omitempty"`
}

// DryRun does everything Run does before it writes a file or starts a process, and
// returns the first run and all candidates in order. Without fallback there are no
// candidates. The errors are those of Run.
func (f *Chain) DryRun(ctx context.Context, req agent.Request) (runner.DryRun, []Candidate, error) {
	c := f.newCall()
	all, err := c.settle(ctx, req)
	if err != nil {
		return runner.DryRun{}, nil, err
	}
	if all == nil {
		dry, err := c.loud.DryRun(ctx, req)
		return dry, nil, err
	}
	at, _ := all.next(-1)
	if all[at].problem != "" {
		if next, _ := all.next(at); next >= 0 {
			at = next
		}
	}
	var list []Candidate
	ready := all.ready()
	for i := range all {
		list = append(list, Candidate{all[i].token, all[i].skipped(ready)})
	}
	dry, err := all[at].runner.DryRun(ctx, all[at].req)
	return dry, list, err
}
