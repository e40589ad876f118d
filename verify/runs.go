package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// emptyAnswer accepts both verdicts: CLIs differ, and either is true.
func emptyAnswer(t *trial) error {
	if err := t.start(modeltest.Always(nil), nil); err != nil {
		return err
	}
	o := t.run(t.ctx, agent.Request{Prompt: "hello"})
	switch {
	case o.err != nil && !errors.Is(o.err, agent.ErrAgent):
		return fmt.Errorf("the run ended with %s", describe(o.err))
	case strings.TrimSpace(o.Text) != "":
		return fmt.Errorf("the run has the answer %s", quote(o.Text))
	case len(t.model.ModelRequests()) == 0:
		return errors.New("the model got no request")
	}
	return nil
}

func toolCall(t *trial) error {
	const fact = "the sky is blue"
	script := modeltest.Replies(modeltest.Reply{t.target.Command("cat fact.txt")}, says("It is blue."))
	if err := t.start(script, map[string]string{"fact.txt": fact + "\n"}); err != nil {
		return err
	}
	o, err := t.ask(agent.Request{Prompt: "what colour?", Access: t.most()}, "It is blue.")
	if err != nil {
		return err
	}
	list, err := t.requests(2)
	if err != nil {
		return err
	}
	if results := list[1].ToolResults(); len(results) != 1 || !strings.Contains(results[0].Output, fact) {
		return fmt.Errorf("the model got the tool results %s", quote(fmt.Sprint(results)))
	}
	call, result := o.last(agent.KindToolCall), o.last(agent.KindToolResult)
	switch {
	case call == nil || call.Tool == nil:
		return errors.New("no event reports the tool call")
	case result == nil || result.Tool == nil:
		return errors.New("no event reports the tool's result")
	case !strings.Contains(string(call.Tool.Input), "cat fact.txt"):
		return fmt.Errorf("the event of the tool call has the input %s", quote(string(call.Tool.Input)))
	case !strings.Contains(result.Tool.Output.String(), fact):
		return fmt.Errorf("the event of the tool's result has the output %s", quote(result.Tool.Output.String()))
	case call.Tool.ID == "" || call.Tool.ID != result.Tool.ID:
		return fmt.Errorf("the events have the IDs %q and %q", call.Tool.ID, result.Tool.ID)
	}
	return nil
}

// last returns the last event of a kind, or nil.
func (o *outcome) last(kind agent.Kind) *agent.Event {
	for _, e := range slices.Backward(o.events) {
		if e.Kind == kind {
			return e
		}
	}
	return nil
}

// most returns the greatest access that the runtime supports.
func (t *trial) most() agent.Access {
	for _, access := range slices.Backward(agent.Accesses()) {
		if slices.Contains(t.runtime.Run.Options.Access, access) {
			return access
		}
	}
	return ""
}

func usage(t *trial) error {
	counted := func(input int64) modeltest.Reply {
		return modeltest.Reply{modeltest.Text{"ok"}, modeltest.Usage{Input: input, Cached: 100, Output: 50, Reasoning: 7}}
	}
	if err := t.start(modeltest.Replies(counted(1000), counted(2000)), nil); err != nil {
		return err
	}
	var session string
	for i, input := range []int64{1000, 2000} {
		o, err := t.ask(agent.Request{Prompt: "hello", Resume: session}, "ok")
		if err != nil {
			return err
		}
		if o.Usage == nil {
			return fmt.Errorf("run %d reports no usage", i+1)
		}
		got, want := *o.Usage, agent.Usage{Input: input, Cached: 100, Output: 50, Reasoning: 7}
		if got.CostUSD = nil; got != want {
			return fmt.Errorf("run %d reports %+v, the model reported %+v", i+1, got, want)
		}
		if t.runtime.Run.Options.Resume {
			session = o.SessionID // so that the second run must not report both
		}
	}
	return nil
}

func resume(t *trial) error {
	return secondTurn(t, 1, func(r *agent.Request, id string) { r.Resume = id })
}

func continued(t *trial) error {
	return secondTurn(t, 0, func(r *agent.Request, _ string) { r.Continue = true })
}

// secondTurn runs two sessions and then a turn that choose makes one of the first or, with
// others, of that before as many other sessions.
func secondTurn(t *trial, others int, choose func(*agent.Request, string)) error {
	replies := []modeltest.Reply{says("I noted 42.")}
	for range others {
		replies = append(replies, says("unrelated"))
	}
	if err := t.start(modeltest.Replies(append(replies, says("it was 42"))...), nil); err != nil {
		return err
	}
	first, err := t.ask(agent.Request{Prompt: "remember 42"}, "I noted 42.")
	if err != nil {
		return err
	}
	if first.SessionID == "" && t.runtime.Run.Options.Resume {
		return errors.New("the run reports no session ID")
	}
	for range others {
		other, err := t.ask(agent.Request{Prompt: "something else"}, "unrelated")
		if err != nil {
			return err
		}
		if other.SessionID == first.SessionID {
			return errors.New("two sessions have the same ID")
		}
	}
	req := agent.Request{Prompt: "what was it?"}
	choose(&req, first.SessionID)
	second, err := t.ask(req, "it was 42")
	if err != nil {
		return err
	}
	if second.SessionID != first.SessionID {
		return fmt.Errorf("the turn belongs to the session %q instead of %q", second.SessionID, first.SessionID)
	}
	list, err := t.requests(others + 2)
	if err != nil {
		return err
	}
	request := list[others+1]
	for _, text := range []string{"remember 42", "I noted 42.", "what was it?"} {
		if n := request.Count(text); n != 1 {
			return fmt.Errorf("%q is in the conversation %d times", text, n)
		}
	}
	if request.Count("something else") != 0 {
		return errors.New("the conversation has the text of another session")
	}
	return nil
}

// A deed returns the tool call that creates the file at an absolute path.
type deed struct {
	name string // of the file, relative to the workdir
	call func(t *trial, path string) modeltest.ToolCall
}

func edits(name string) deed {
	return deed{name, func(t *trial, path string) modeltest.ToolCall { return t.target.Edit(path) }}
}

func runs(name string) deed {
	return deed{name, func(t *trial, path string) modeltest.ToolCall { return t.target.Command("touch '" + path + "'") }}
}

// access checks whether a model with access does the deed, and that the run continues to
// its answer.
func access(access agent.Access, d deed, want bool) func(*trial) error {
	return func(t *trial) error {
		var path string
		script := func(r *modeltest.Request) modeltest.Reply {
			if len(r.ToolResults()) == 0 {
				return modeltest.Reply{d.call(t, path)}
			}
			return says("done")
		}
		if err := t.start(script, nil); err != nil {
			return err
		}
		path = filepath.Join(t.work, d.name)
		_, err := t.ask(agent.Request{Prompt: "make a file", Access: access}, "done")
		_, missing := os.Lstat(path)
		switch made := missing == nil; {
		case made && !want:
			return errors.New("the file was created")
		case err != nil:
			return err
		case !made && want:
			return fmt.Errorf("the file was not created; the tool answered %s", quote(lastResult(t.model)))
		}
		return nil
	}
}

// lastResult returns the last tool result that the model got.
func lastResult(model *modeltest.Server) string {
	for _, r := range slices.Backward(model.ModelRequests()) {
		if results := r.ToolResults(); len(results) > 0 {
			return results[len(results)-1].Output
		}
	}
	return ""
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

// leavesNothing compares the folders before and after a run.
func leavesNothing(t *trial) error {
	if err := t.start(modeltest.Always(says("ok")), rules()); err != nil {
		return err
	}
	before, err := t.files()
	if err != nil {
		return err
	}
	if _, err := t.ask(agent.Request{Prompt: "hello"}, "ok"); err != nil {
		return err
	}
	after, err := t.files()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[name]; !ok {
			return fmt.Errorf("the run left %s", name)
		} else if was != after[name] {
			return fmt.Errorf("the run changed %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			return fmt.Errorf("the run removed %s", name)
		}
	}
	return t.checkProcesses()
}

// files returns what a run must not change.
func (t *trial) files() (map[string]string, error) {
	all := map[string]string{}
	for _, folder := range []struct {
		path string
		skip []string
	}{{t.home, t.target.Keeps}, {t.work, t.owned()}, {t.tmp, nil}} {
		found, err := listFiles(folder.path, folder.skip)
		if err != nil {
			return nil, err
		}
		for name, what := range found {
			all[filepath.Base(folder.path)+"/"+name] = what
		}
	}
	return all, nil
}
