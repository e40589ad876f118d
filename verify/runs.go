package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

func status(code int) modeltest.Reply {
	return modeltest.Reply{modeltest.HTTPError{Status: code, Message: "refused by the scripted model"}}
}

// failure checks that a run whose model always gives reply fails with an error of kind.
func failure(reply modeltest.Reply, kind error) func(*trial) error {
	return func(t *trial) error {
		if err := t.start(modeltest.Always(reply), nil); err != nil {
			return err
		}
		o := t.run(t.ctx, agent.Request{Prompt: "hello"})
		switch {
		case !errors.Is(o.err, kind):
			return fmt.Errorf("the run ended with %s; want a failure of kind %q", describe(o.err), agent.KindOf(kind))
		case len(t.model.ModelRequests()) == 0:
			return errors.New("the model got no request")
		}
		return t.checkProcesses()
	}
}

// nothing is a scene with a model that answers nothing.
var nothing = &scene{func(t *trial) error {
	if err := t.arrange(modeltest.Always(nil), atRoot); err != nil {
		return err
	}
	t.shoot(layoutTake, agent.Request{Prompt: "hello", Workdir: t.workdir(atRoot)}, "")
	return nil
}}

// emptyAnswer accepts both verdicts: CLIs differ, and either is true.
func emptyAnswer(t *trial) error {
	k := t.takes[layoutTake]
	switch {
	case k.err != nil && !errors.Is(k.err, agent.ErrAgent):
		return fmt.Errorf("the run ended with %s", describe(k.err))
	case strings.TrimSpace(k.Text) != "":
		return fmt.Errorf("the run has the answer %s", quote(k.Text))
	case len(k.requests) == 0:
		return errors.New("the model got no request")
	}
	return nil
}

// A deed is a tool call that creates a file.
type deed struct {
	file  string // relative to the workdir
	needs need
	call  func(t *trial, path string) modeltest.ToolCall // path is absolute
}

func edits(file string) deed {
	return deed{file, hasEdit, func(t *trial, path string) modeltest.ToolCall { return t.target.Edit(path) }}
}

func runs(file string) deed {
	return deed{file, hasCommand, func(t *trial, path string) modeltest.ToolCall { return t.target.Command("touch '" + path + "'") }}
}

// attempts returns a scene in which a model with access does the deeds that the CLI has
// tools for, one after another, in a repository with the layout.
func attempts(access agent.Access, l layout, deeds ...deed) *scene {
	return limitedAttempts(func(*Target, *agent.Request) {}, access, l, deeds...)
}

// limitedAttempts is attempts with a request that limit changes.
func limitedAttempts(limit func(*Target, *agent.Request), access agent.Access, l layout, deeds ...deed) *scene {
	return &scene{func(t *trial) error {
		var calls []modeltest.ToolCall
		script := func(r *modeltest.Request) modeltest.Reply {
			if n := len(r.ToolResults()); n < len(calls) {
				return modeltest.Reply{calls[n]}
			}
			return says("done") // only after all of them
		}
		if err := t.arrange(script, l); err != nil {
			return err
		}
		workdir := t.workdir(l)
		for _, d := range deeds {
			if d.needs(&t.target, &t.runtime) == "" {
				calls = append(calls, d.call(t, filepath.Join(workdir, d.file)))
			}
		}
		req := agent.Request{Prompt: "make files", Workdir: workdir}
		if hasAccess(access)(&t.target, &t.runtime) == "" {
			req.Access = access
		}
		limit(&t.target, &req)
		t.shoot(layoutTake, req, "done")
		for _, d := range deeds {
			_, missing := os.Lstat(filepath.Join(workdir, d.file))
			t.note(d.file, missing)
		}
		return nil
	}}
}

// did checks whether the file of a deed was created.
func did(d deed, want bool) func(*trial) error {
	return func(t *trial) error {
		k, err := t.take(layoutTake)
		switch made := t.facts[d.file] == nil; {
		case made && !want:
			return errors.New("the file was created")
		case err != nil:
			return err
		case !made && want:
			return fmt.Errorf("the file was not created; the tools answered %s", quote(toolResults(k.requests)))
		}
		return nil
	}
}

// toolResults returns the tool results in the last request.
func toolResults(list []*modeltest.Request) string {
	return fmt.Sprint(list[len(list)-1].ToolResults())
}

// silence checks that a run with req whose model is silent fails with an error of kind.
func silence(req agent.Request, kind error) func(*trial) error {
	return func(t *trial) error {
		if err := t.start(modeltest.Always(modeltest.Reply{modeltest.Silence{}}), nil); err != nil {
			return err
		}
		req.Prompt = "hello"
		if o := t.run(t.ctx, req); !errors.Is(o.err, kind) {
			return fmt.Errorf("the run ended with %s; want a failure of kind %q", describe(o.err), agent.KindOf(kind))
		}
		return t.checkProcesses()
	}
}

// canceled cancels a run while a command runs that does not end by itself.
func canceled(t *trial) error {
	call := t.target.Command("touch running; sleep 300")
	if err := t.start(modeltest.Replies(modeltest.Reply{call}), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	ended := make(chan outcome, 1)
	go func() { ended <- t.run(ctx, agent.Request{Prompt: "hello", Access: agent.AccessFull}) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case o := <-ended:
			return fmt.Errorf("the run ended before it was canceled, with %s", describe(o.err))
		case <-tick.C:
		}
		if _, err := os.Lstat(filepath.Join(t.work, "running")); err == nil {
			break
		}
	}
	cancel()
	if o := <-ended; !errors.Is(o.err, agent.ErrCanceled) {
		return fmt.Errorf("the run ended with %s instead of a cancellation", describe(o.err))
	}
	return t.checkProcesses()
}
