//go:build acceptance

package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// turnUsage is the usage of each answer of the model.
var turnUsage = modeltest.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7}

func checkUsage(t *testing.T, r agent.Result, requests int64) {
	t.Helper()
	if r.Usage == nil {
		t.Fatal("no usage")
	}
	got := *r.Usage
	got.CostUSD = nil
	want := agent.Usage{Input: 1000 * requests, Cached: 100 * requests, Output: 50 * requests, Reasoning: 7 * requests}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// Several turns use one process, and each has its own result.
func TestSessionTurns(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		w := cli.setup(t, modeltest.Replies(
			modeltest.Reply{modeltest.Text{"no", "ted"}, turnUsage},
			modeltest.Reply{modeltest.Thinking{"Look."}, modeltest.Text{"Looking."}, cli.command("cat fact.txt"), turnUsage},
			modeltest.Reply{modeltest.Text{"It is blue."}, turnUsage},
			modeltest.Reply{modeltest.Text{"bye"}, turnUsage},
		), map[string]string{"fact.txt": "the sky is blue\n"})
		d := w.startSession(session.Options{}, func(r *agent.Request) { r.Access = agent.AccessFull })
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
			checkUsage(t, r, []int64{1, 2, 1}[i])
			if r.SessionID == "" || r.SessionID != first.SessionID || r.Model != w.modelID || r.Runtime != w.agent || r.Duration <= 0 {
				t.Errorf("turn %d: %+v", i, r)
			}
		}
		if got := d.session.Info().SessionID; got != first.SessionID {
			t.Errorf("session %s, the turns say %s", got, first.SessionID)
		}
		want := []agent.Kind{agent.KindThinking, agent.KindText, agent.KindToolCall, agent.KindToolResult, agent.KindText, agent.KindResult}
		got := kinds(list)
		if len(got) > 0 && got[0] == agent.KindSessionStarted {
			got = got[1:] // some CLIs repeat it in each turn
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s\n%+v", diff, list)
		}
		if output := lastOfKind(list, agent.KindToolResult).Tool.Output.String(); !strings.Contains(output, "the sky is blue") {
			t.Errorf("tool result %q", output)
		}
		checkConversation(t, w.wantRequests(4)[3], "user: remember 42", "assistant: noted", "user: what colour?",
			"assistant: Looking.", "assistant: It is blue.", "user: bye")
		d.stop()
	})
}

// A message to steer a turn reaches the model in that turn, or in the next one if the CLI
// cannot be steered.
func TestSessionIsSteered(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		hold := make(chan struct{})
		w := cli.setup(t, modeltest.Replies(
			modeltest.Reply{modeltest.Text{"on my way"}, modeltest.Wait(hold)},
			answer("turned"), answer("last")), nil)
		ctx, cancel := context.WithTimeout(t.Context(), w.limit)
		defer cancel()
		d := w.startSession(session.Options{}, nil)
		begun := d.session.Send(session.Message{Text: "go left"})
		if _, err := w.model.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		later := d.session.Send(session.Message{Text: "and stop"})
		steered := d.session.Steer(ctx, session.Message{Text: "go right"})
		if (steered == begun) != cli.steers {
			t.Errorf("the message was added to the running turn: %v", steered == begun)
		}
		if cli.steers {
			if _, err := w.model.Await(ctx, 2); err != nil { // before the end of the first answer
				t.Fatal(err)
			}
		}
		close(hold)
		for i, turn := range []*session.Turn{steered, later} {
			if r, err := d.wait(turn); err != nil || r.Text != []string{"turned", "last"}[i] {
				t.Errorf("turn %d: %q, %v", i, r.Text, err)
			}
		}
		if !cli.steers {
			if r, err := d.wait(begun); err != nil || r.Text != "on my way" {
				t.Errorf("the first turn: %q, %v", r.Text, err)
			}
		}
		if got := lastPrompt(w.wantRequests(3)[1]); got != "go right" {
			t.Errorf("the second request ends with %q", got)
		}
		d.stop()
	})
}

// Messages sent during a turn are answered in order, in separate turns.
func TestSessionAnswersInOrder(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		hold := make(chan struct{})
		w := cli.setup(t, modeltest.Replies(
			modeltest.Reply{modeltest.Wait(hold), modeltest.Text{"first"}}, answer("second"), answer("third")), nil)
		d := w.startSession(session.Options{}, func(r *agent.Request) { r.Prompt = "one" })
		ctx, cancel := context.WithTimeout(t.Context(), w.limit)
		defer cancel()
		if _, err := w.model.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		two := d.session.Send(session.Message{Text: "two"})
		three := d.session.Send(session.Message{Text: "three"})
		close(hold)
		for i, turn := range []*session.Turn{two, three} {
			if r, err := d.wait(turn); err != nil || r.Text != []string{"second", "third"}[i] {
				t.Errorf("%q, %v", r.Text, err)
			}
		}
		checkConversation(t, w.wantRequests(3)[2], "user: one", "assistant: first", "user: two", "assistant: second", "user: three")
		d.stop()
	})
}

// An interrupt ends the turn and its commands, including those in a separate process
// session. The next turn works.
func TestSessionIsInterrupted(t *testing.T) {
	t.Parallel()
	script := func(command string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "exec", Arguments: fmt.Sprintf("text((await tools.exec_command({cmd: %q, yield_time_ms: 60000})).output)", command)}
	}
	call := func(command string) modeltest.ToolCall {
		return execCommand(map[string]any{"cmd": command, "yield_time_ms": 60000})
	}
	for name, tt := range map[string]struct {
		setup    setupFunc
		model    string
		command  func(command string) modeltest.ToolCall
		sleepers string
		access   agent.Access
	}{
		"codex in its sandbox":  {newCodex, "gpt-5.5", call, sleepers, agent.AccessWrite},
		"codex running scripts": {newCodex, "gpt-6.1-sol", script, sleepers, agent.AccessFull},
		"claude":                {newClaude, "claude-opus-5-5", bash, sleepersP, agent.AccessFull},
		"gemini":                {newGemini, "gemini-2.5-pro", shell, sleepers, agent.AccessFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.setup(t, modeltest.Replies(
				modeltest.Reply{tt.command(tt.sleepers)},
				modeltest.Reply{tt.command("touch continued")}, answer("on we go"),
				modeltest.Reply{modeltest.Silence{}},
				answer("again")), map[string]string{".gitignore": "running\ncontinued\n"})
			d := w.startSession(session.Options{}, func(r *agent.Request) { r.Access, r.Model = tt.access, tt.model })
			ctx, cancel := context.WithTimeout(t.Context(), w.limit)
			defer cancel()

			turn := d.session.Send(session.Message{Text: "sleep"})
			w.awaitFile("running")
			if err := d.session.Interrupt(ctx); err != nil {
				t.Error(err)
			}
			_, err := d.wait(turn)
			wantErrorIs(t, err, agent.ErrCanceled)
			w.awaitNone("1000")
			d.sendWant("continue", "on we go")
			w.awaitFile("continued")

			turn = d.session.Send(session.Message{Text: "say nothing"})
			if _, err := w.model.Await(ctx, 4); err != nil {
				t.Fatal(err)
			}
			if err := d.session.Interrupt(ctx); err != nil {
				t.Error(err)
			}
			_, err = d.wait(turn)
			wantErrorIs(t, err, agent.ErrCanceled)
			d.sendWant("once more", "again")
			d.stop()
		})
	}
}

func TestSessionIsStoppedDuringATurn(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, testStopDuringATurn)
}

// testStopDuringATurn checks that stopping during a turn leaves no process running.
func testStopDuringATurn(t *testing.T, cli sessionCLI) {
	w := cli.setup(t, modeltest.Replies(modeltest.Reply{cli.command(cli.sleepers)}), map[string]string{".gitignore": "running\n"})
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.Access, r.Prompt = agent.AccessFull, "sleep" })
	w.awaitFile("running")
	waiting := d.session.Send(session.Message{Text: "never said"})
	d.stop()
	_, err := d.wait(waiting)
	wantErrorIs(t, err, session.ErrNotDelivered)
	wantErrorIs(t, err, agent.ErrCanceled)
}

func TestSessionRefusesUnknownID(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		w := cli.setup(t, modeltest.Replies(), nil)
		const id = "01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0"
		before := w.snapshot()
		d, err := w.tryStartSession(session.Options{}, func(r *agent.Request) { r.Resume = id })
		if err == nil {
			_, err = d.send("hello")
			t.Errorf("an unknown session was resumed; its first turn ends with %v", err)
		} else if !strings.Contains(err.Error(), id) {
			t.Errorf("the error does not name the session: %v", err)
		}
		t.Log(err)
		w.allowPartialState()
		w.checkNothingLeft(before)
	})
}

// Messages reach the model unchanged, and each request has the instructions once.
func TestSessionMessagesAreUnchanged(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		w := cli.setup(t, modeltest.Always(answer("got it")), layered())
		d := w.startSession(session.Options{}, nil)
		for i, text := range []string{
			"/compact the prose", "-", "--help me", "look at @services/a/main.go and {{NAME}}", "!touch pwned", "$(touch pwned)",
			"two lines\n\n\tand a tab", strings.Repeat("0123456789", 30<<10) + "€",
		} {
			d.sendWant(text, "got it")
			request := w.wantRequests(i + 1)[i]
			got := lastPrompt(request)
			if strings.HasPrefix(text, "/") {
				got = strings.TrimPrefix(got, "\n")
			}
			if got != text {
				t.Errorf("the model got %d bytes of %d: %s", len(got), len(text), cmp.Diff(clip(text), clip(got)))
			}
			checkMarks(t, request, rootMark)
		}
		d.stop()
	})
}

// Claude Code starts a turn when a background command ends. It is not mistaken for the
// turn of a message sent meanwhile.
func TestClaudeStartsTurnItself(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newClaude(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "Bash", Arguments: `{"command":"python3 -c 'import time; time.sleep(1)'","description":"wait","run_in_background":true}`}},
		answer("left it running"),
		modeltest.Reply{modeltest.Text{"it has ended"}, modeltest.Wait(hold)},
		answer("hello yourself")), nil)
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.Access = agent.AccessFull })
	d.sendWant("run it", "left it running")
	ctx, cancel := context.WithTimeout(t.Context(), w.limit)
	defer cancel()
	if _, err := w.model.Await(ctx, 3); err != nil {
		t.Fatal(err)
	}
	turn := d.session.Send(session.Message{Text: "hello"})
	close(hold)
	if r, err := d.wait(turn); err != nil || r.Text != "hello yourself" {
		t.Errorf("the answer is %q, %v", r.Text, err)
	}
	w.wantRequests(4)
	d.stop()
}
