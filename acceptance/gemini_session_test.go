//go:build acceptance

package acceptance

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

func withAccess(access agent.Access) func(*agent.Request) {
	return func(r *agent.Request) { r.Access = access }
}

// Several turns use one process, and each has its own result. The output tokens of
// Gemini CLI do not include thinking.
func TestGeminiSessionTurns(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"no", "ted"}, turnUsage},
		modeltest.Reply{modeltest.Thinking{"Look."}, modeltest.Text{"Looking."}, shell("cat fact.txt; git status"), turnUsage},
		modeltest.Reply{modeltest.Text{"It is blue."}, turnUsage},
		modeltest.Reply{modeltest.Text{"bye"}, turnUsage},
	), map[string]string{"fact.txt": "the sky is blue\n"})
	d := w.startSession(session.Options{}, withAccess(agent.AccessFull))
	agentID := d.process()
	first := d.sendWant("remember 42", "noted")
	mark := len(d.eventLog())
	second := d.sendWant("what colour?", "It is blue.")
	list := d.eventLog()[mark:]
	third := d.sendWant("bye", "bye")
	if again := d.process(); again != agentID {
		t.Errorf("process %d, then %d", agentID, again)
	}
	for i, r := range []agent.Result{first, second, third} {
		n := []int64{1, 2, 1}[i]
		want := agent.Usage{Input: 1000 * n, Output: 43 * n}
		if r.Usage == nil || *r.Usage != want {
			t.Errorf("usage of turn %d: %+v, want %+v", i, r.Usage, want)
		}
		if r.SessionID == "" || r.SessionID != d.session.Info().SessionID || r.Model != w.modelID || r.Runtime != "gemini" || r.Duration <= 0 {
			t.Errorf("turn %d: %+v", i, r)
		}
	}
	want := []agent.Kind{agent.KindThinking, agent.KindText, agent.KindToolCall, agent.KindToolResult, agent.KindText, agent.KindResult}
	if diff := cmp.Diff(want, kinds(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%+v", diff, list)
	}
	call, result := lastOfKind(list, agent.KindToolCall).Tool, lastOfKind(list, agent.KindToolResult).Tool
	if !strings.Contains(string(call.Input), "cat fact.txt") || call.ID == "" || call.ID != result.ID {
		t.Errorf("tool call %s %s, result %s", call.ID, call.Input, result.ID)
	}
	requests := w.wantRequests(4)
	if got := requests[2].ToolResults(); len(got) != 1 || !strings.Contains(got[0].Output, "the sky is blue") {
		t.Errorf("the model got the tool results %q", got)
	}
	checkConversation(t, requests[3], "user: remember 42", "assistant: noted", "user: what colour?",
		"assistant: Looking.", "assistant: It is blue.", "user: bye")
	d.stop()
}

// Messages sent during a turn are answered in the next turns, even one to steer it.
func TestGeminiSessionAnswersInOrder(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"first"}, modeltest.Wait(hold), turnUsage}, answer("second"), answer("third")), nil)
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.Prompt = "one" })
	ctx, cancel := context.WithTimeout(t.Context(), w.limit)
	defer cancel()
	if _, err := w.model.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	three := d.session.Send(session.Message{Text: "three"})
	two := d.session.Steer(ctx, session.Message{Text: "two"})
	close(hold)
	for i, turn := range []*session.Turn{two, three} {
		if r, err := d.wait(turn); err != nil || r.Text != []string{"second", "third"}[i] {
			t.Errorf("%q, %v", r.Text, err)
		}
	}
	checkConversation(t, w.wantRequests(3)[2], "user: one", "assistant: first", "user: two", "assistant: second", "user: three")
	d.stop()
}

func TestGeminiSessionIsStoppedDuringATurn(t *testing.T) {
	t.Parallel()
	testStopDuringATurn(t, sessionCLI{setup: newGemini, command: shell, sleepers: sleepers})
}

// A session can be resumed immediately after its process was killed or stopped, and has
// the instructions once.
func TestGeminiSessionIsResumed(t *testing.T) {
	t.Parallel()
	reply := func(text string) modeltest.Reply { return modeltest.Reply{modeltest.Text{text}, turnUsage} }
	w := newGemini(t, modeltest.Replies(reply("noted"), reply("nice"), reply("it was 42"), reply("still 42"), reply("42"), reply("yes")), layered())
	d := w.startSession(session.Options{}, nil)
	first := d.sendWant("remember 42", "noted")
	d.sendWant("it is blue", "nice")
	d.kill(syscall.SIGKILL)
	w.checkNothingLeft(d.before)
	if _, err := d.send("are you there?"); err == nil {
		t.Error("a session answers after its agent was killed")
	}
	resume := func(r *agent.Request) { r.Resume = first.SessionID }

	d = w.startSession(session.Options{}, resume)
	d.sendWant("what was it?", "it was 42")
	if r := d.sendWant("and now?", "still 42"); r.SessionID != first.SessionID || *r.Usage != (agent.Usage{Input: 1000, Output: 43}) {
		t.Errorf("%+v, usage %+v; want session %s", r, r.Usage, first.SessionID)
	}
	d.stop()

	d = w.startSession(session.Options{}, resume) // without a message
	d.stop()

	d = w.startSession(session.Options{}, resume)
	mark := len(d.eventLog())
	d.sendWant("for the last time", "42")
	for _, e := range d.eventLog()[mark:] {
		if e.Kind == agent.KindText && e.Text != "42" {
			t.Errorf("the turn repeats %q", e.Text)
		}
	}
	d.stop()
	r, o := w.run("yes?", "--continue")
	w.wantAnswer("yes", r, o)
	if r.SessionID != first.SessionID {
		t.Errorf("continued %s, want %s", r.SessionID, first.SessionID)
	}

	requests := w.wantRequests(6)
	for _, request := range requests[:5] {
		checkMarks(t, request, rootMark)
	}
	got := conversation(requests[4])
	got[0] = "user:" + got[0][strings.LastIndexByte(got[0], '\n'):]
	want := []string{
		"user:\nremember 42", "assistant: noted", "user: it is blue", "assistant: nice", "user: what was it?", "assistant: it was 42",
		"user: and now?", "assistant: still 42", "user: for the last time",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
}

// Messages reach the model unchanged, and each request has the instructions once.
func TestGeminiSessionMessagesAreUnchanged(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Always(modeltest.Reply{modeltest.Text{"got it"}, turnUsage}), layered())
	d := w.startSession(session.Options{}, nil)
	d.sendWant("hello", "got it")
	for i, text := range []string{
		"/help", " \t/memory show", "$about", "/compact the prose", "-", "--help me",
		"look at @services/a/main.go and {{NAME}}", "@services/b/AGENTS.md", "!touch pwned", "$(touch pwned)",
		"  two lines\n\n\tand a tab\n", strings.Repeat("0123456789", 30<<10) + "€",
	} {
		d.sendWant(text, "got it")
		request := w.wantRequests(i + 2)[i+1]
		if got := lastPrompt(request); got != text {
			t.Errorf("the model got %d bytes of %d: %s", len(got), len(text), cmp.Diff(clip(text), clip(got)))
		}
		checkMarks(t, request, rootMark)
	}
	d.stop()
}

func TestGeminiSessionRefusesUnknownID(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(), nil)
	const id = "01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0"
	before := w.snapshot()
	_, err := w.tryStartSession(session.Options{}, func(r *agent.Request) { r.Resume = id })
	wantErrorIs(t, err, agent.ErrUsage)
	if err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("the error does not name the session: %v", err)
	}
	w.checkNothingLeft(before)
}

// A session reports a changed file with its hunk, a new one with all its lines.
func TestGeminiSessionFileChangesHaveDiffs(t *testing.T) {
	t.Parallel()
	var w *fixture
	call := func(tool, name, arguments string) modeltest.Reply {
		return modeltest.Reply{modeltest.ToolCall{Name: tool, Arguments: `{"file_path":"` + filepath.Join(w.repo, name) + `",` + arguments + `}`}, turnUsage}
	}
	w = newGemini(t, func(r *modeltest.Request) modeltest.Reply {
		switch len(r.ToolResults()) {
		case 0:
			return call("replace", "fact.txt", `"instruction":"say grey","old_string":"blue","new_string":"grey"`)
		case 1:
			return call("write_file", "new.txt", `"content":"one\ntwo"`)
		}
		return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
	}, map[string]string{"fact.txt": "the sky\nis blue\ntoday\n"})
	w.mayAdd = []string{"fact.txt", "new.txt"}
	d := w.startSession(session.Options{}, nil)
	d.sendWant("change it", "done")
	d.stop()
	var diffs []string
	for _, e := range d.eventLog() {
		for _, c := range e.Changes {
			diffs = append(diffs, c.Action+"\n"+c.Diff)
		}
	}
	want := []string{
		"update\n@@ -1,3 +1,3 @@\n the sky\n-is blue\n+is grey\n today\n",
		"add\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
	}
	if diff := cmp.Diff(want, diffs); diff != "" {
		t.Errorf("diffs (-want +got):\n%s\n%v", diff, d.eventLog())
	}
}
