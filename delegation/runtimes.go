package delegation

import (
	"context"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// An Overview is what a caller can use.
type Overview struct {
	Runtimes []Runtime `json:"runtimes"`
	// Default is the runtime of a call that names none; empty if there is none.
	Default string `json:"default,omitempty"`

	Workdir  string       `json:"workdir"`
	Access   agent.Access `json:"access"`            // the most that an agent can get
	Depth    int          `json:"depth"`             // levels of agents below the caller
	RunsLeft int          `json:"runs_left"`         // runs and messages
	Approve  bool         `json:"approve"`           // the caller may accept approval requests
	Problem  string       `json:"problem,omitempty"` // of the user's lists of runtimes
}

// A Runtime is one that can be named in a call.
type Runtime struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why it is not available

	// Access lists what its agents can be given in a run, and SessionAccess in a session;
	// empty if it has none.
	Access        []agent.Access `json:"access,omitempty"`
	SessionAccess []agent.Access `json:"session_access,omitempty"`

	Model   bool                    `json:"model"` // takes the name of a model
	Efforts []agent.ReasoningEffort `json:"efforts,omitempty"`
	Resume  bool                    `json:"resume"` // a run can continue the session of another
}

// Runtimes returns the runtimes and the bounds of the broker. It starts no process.
// Without all, it leaves out runtimes that are not available.
func (b *Broker) Runtimes(ctx context.Context, all bool) Overview {
	r := *b.settings.Runner
	r.Workdir = b.settings.Workdir
	o := Overview{
		Runtimes: []Runtime{}, Workdir: b.settings.Workdir, Access: b.bounds.access,
		Depth: b.bounds.depth, RunsLeft: b.budget.runsLeft(), Approve: b.settings.Approve,
	}
	found, err := r.Detect(ctx)
	if err != nil {
		o.Problem = err.Error()
	}
	for _, d := range found {
		if all || d.Available() {
			o.Runtimes = append(o.Runtimes, b.describe(d))
		}
	}
	r.Warn = func(string) {} // Detect has reported them
	if selection, err := r.Resolve(ctx, ""); err == nil {
		o.Default = selection.Token
	}
	return o
}

func (b *Broker) describe(d runner.Detected) Runtime {
	rt := d.Runtime
	out := Runtime{ID: rt.ID, Name: rt.Name, Available: d.Available(), Reason: d.Disabled}
	switch {
	case out.Available || out.Reason != "":
	case d.Problem != nil:
		out.Reason = d.Problem.Error()
	default:
		out.Reason = "not installed; get it at " + rt.InstallURL
	}
	if rt.Run.Command != nil {
		out.Access = b.allowed(rt.Run.Options)
		out.Model, out.Efforts, out.Resume = rt.Run.Options.Model, rt.Run.Options.Efforts, rt.Run.Options.Resume
	}
	if rt.Session != nil {
		out.SessionAccess = b.allowed(rt.Session.Options)
	}
	return out
}

// allowed returns the kinds of access that o supports and the bounds allow.
func (b *Broker) allowed(o registry.Options) []agent.Access {
	return slices.DeleteFunc(slices.Clone(o.Access), func(a agent.Access) bool { return lesser(a, b.bounds.access) != a })
}
