//go:build acceptance

package acceptance

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	geminicli "github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// discuss opens a session of Gemini CLI, which ends with the test at the latest.
func (w *world) discuss(o session.Options, change func(*agent.Request)) *dialogue {
	w.t.Helper()
	d, err := w.tryDiscuss(o, change)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) tryDiscuss(o session.Options, change func(*agent.Request)) (*dialogue, error) {
	w.t.Helper()
	var known registry.Registry
	if err := known.Register(geminicli.Runtime()); err != nil {
		w.t.Fatal(err)
	}
	d := &dialogue{world: w, before: w.snapshot()}
	r := runner.Runner{Registry: &known, Environ: w.environ(), Warn: func(line string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warnings = append(d.warnings, line)
	}}
	events := o.Events
	o.Events = func(e *agent.Event) {
		d.mu.Lock()
		d.events = append(d.events, *e.Clone())
		d.mu.Unlock()
		if events != nil {
			events(e)
		}
	}
	var err error
	if d.session, err = r.StartSession(w.t.Context(), w.request(change), o); err == nil {
		w.t.Cleanup(func() { d.session.Stop(context.Background(), "the test is over") })
	}
	return d, err
}
