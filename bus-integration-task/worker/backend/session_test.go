package backend_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/worker/backend"
)

func TestAttemptReportsAndHasEvidence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.start(backend.Attempt{Prompt: prompt("say I look.", "run 0 go test ./...", "run 2 go vet ./...", "write new.txt hello", "plan 1 2", "say Done."), Model: "m"})
	o := r.finish(backend.Completed)
	if o.Text != "Done." || o.Retryable || o.Runtime != "codex" || o.Model != "stub-1" || len(o.ThreadID) != 36 {
		t.Errorf("%+v", o)
	}
	want := []closeout.Command{{Line: "go test ./...", ExitCode: new(0), Passed: true}, {Line: "go vet ./...", ExitCode: new(2)}}
	if diff := cmp.Diff(want, o.Commands, cmpopts.IgnoreFields(closeout.Command{}, "Ended")); diff != "" {
		t.Error(diff)
	}
	if len(o.Plan) != 2 || o.Plan[0].Status != "completed" || o.Plan[1].Status != "pending" {
		t.Errorf("plan %+v", o.Plan)
	}
	if text, err := os.ReadFile(filepath.Join(b.workdir, "new.txt")); string(text) != "hello\n" {
		t.Errorf("the agent did not work in the workdir: %q, %v", text, err)
	}
	got := r.reported()
	all := strings.Join(got, "\n")
	if got[0] != "notice: starting Codex app-server task backend" {
		t.Errorf("reported first %q", got[0])
	}
	r.wantReported("notice: Codex app-server turn started", "opened: codex stub-1")
	for _, text := range []string{"I look.", "Done.", "running: go test ./...", "exit code 0: go test ./...", "exit code 2: go vet", "add new.txt", "plan: 1 of 2 steps completed"} {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not reported; reported\n%s", text, all)
		}
	}
}

func TestAnotherRuntimeIsNamedInNotices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Runtime = "other"
	r := b.start(backend.Attempt{Prompt: prompt("guide")})
	r.await("notice: Other CLI turn started")
	if d, err := r.Say(t.Context(), "left"); d != backend.Steered || err != nil {
		t.Errorf("%q, %v", d, err)
	}
	if o := r.finish(backend.Completed); o.Text != "guidance: left" {
		t.Errorf("%+v", o)
	}
	r.wantReported("notice: starting Other CLI task backend", "notice: live guidance delivered to Other CLI session")
}

func TestSaySteersTheRunningTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.start(backend.Attempt{Prompt: prompt("guide")})
	d, err := r.Say(t.Context(), "left out the slow ones") // waits for the turn
	if d != backend.Steered || err != nil {
		t.Errorf("%q, %v", d, err)
	}
	if o := r.finish(backend.Completed); o.Text != "guidance: left out the slow ones" {
		t.Errorf("the answer is %q", o.Text)
	}
	r.wantReported("notice: live guidance delivered to Codex app-server session")
	if _, err := r.Say(t.Context(), "too late"); !errors.Is(err, backend.ErrOver) {
		t.Errorf("a message after the end: %v", err)
	}
}

// A message that arrives when the turn has just ended becomes a turn of the same attempt.
func TestLateMessageIsTheNextTurn(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("say first", "late")})
	if d, err := r.Say(t.Context(), prompt("say second")); d != backend.NextTurn || err != nil {
		t.Errorf("%q, %v", d, err)
	}
	if o := r.finish(backend.Completed); o.Text != "second" {
		t.Errorf("the answer is %q", o.Text)
	}
	r.wantReported("notice: live guidance queued as the next turn of the Codex app-server session")
}

// A message that the agent did not get is in the outcome.
func TestUndeliveredMessageIsReturned(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("late", "die 3")})
	if d, err := r.Say(t.Context(), "lost"); d != backend.NextTurn || err != nil {
		t.Errorf("%q, %v", d, err)
	}
	if o := r.finish(backend.Failed); !slices.Equal(o.Undelivered, []string{"lost"}) || !o.Retryable {
		t.Errorf("%+v", o)
	}
}

func TestApprovalIsAnswered(t *testing.T) {
	t.Parallel()
	for d, want := range map[session.Decision]string{
		session.Accept: "decision: accept", session.AcceptForSession: "decision: acceptForSession", session.Decline: "decision: decline", session.Cancel: "",
	} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			r := newBench(t).start(backend.Attempt{Prompt: prompt("ask rm -r build"), ApprovalsBefore: 6})
			r.await(`approval: 7 command "rm -r build" "need it"`)
			if err := r.Answer(t.Context(), "1", d); !errors.Is(err, backend.ErrNotPending) {
				t.Errorf("the answer to another request: %v", err)
			}
			if err := r.Answer(t.Context(), "7", "yes"); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("an unknown decision: %v", err)
			}
			if err := r.Answer(t.Context(), "7", d); err != nil {
				t.Error(err)
			}
			if err := r.Answer(t.Context(), "7", d); !errors.Is(err, backend.ErrNotPending) {
				t.Errorf("the second answer: %v", err)
			}
			result := backend.Completed
			if d == session.Cancel {
				result = backend.Canceled
			}
			if o := r.finish(result); o.Text != want {
				t.Errorf("the agent got %q", o.Text)
			}
			if slices.Contains(r.reported(), "closed: 7") {
				t.Error("the request was reported as unanswered")
			}
		})
	}
}

func TestUnansweredApprovalIsDeclined(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("ask ls"), ApprovalTimeout: time.Millisecond})
	if o := r.finish(backend.Completed); o.Text != "decision: decline" {
		t.Errorf("the agent got %q", o.Text)
	}
	r.wantReported("closed: 1")
}

func TestApprovalPolicyNeverDeclines(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("ask ls"), ApprovalPolicy: backend.ApprovalNever})
	if o := r.finish(backend.Completed); o.Text != "decision: decline" {
		t.Errorf("the agent got %q", o.Text)
	}
	if all := strings.Join(r.reported(), "\n"); strings.Contains(all, "approval:") {
		t.Errorf("the request was reported:\n%s", all)
	}
}

// No user answers a question of the agent, which continues with its task.
func TestQuestionIsDeclined(t *testing.T) {
	t.Parallel()
	for _, policy := range []backend.ApprovalPolicy{"", backend.ApprovalNever} {
		r := newBench(t).start(backend.Attempt{Prompt: prompt("question Which way?"), ApprovalPolicy: policy})
		if o := r.finish(backend.Completed); o.Text != "got 0 answers" {
			t.Errorf("the agent says %q", o.Text)
		}
		if policy == "" {
			r.wantReported(`notice: the agent asked "Which way?"; declined, because no user answers during a task`)
		}
	}
}

// The session outlives its process, and the folder that the first one worked in.
func TestStoredThreadIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	state := t.TempDir()
	writeFile(t, filepath.Join(b.home, ".codex", "auth.json"), `{"login":1}`)
	first := b.start(backend.Attempt{Prompt: prompt("thread"), StateDir: state}).finish(backend.Completed)
	again := backend.Attempt{Prompt: prompt("thread"), StateDir: state, ThreadID: first.ThreadID, Workdir: t.TempDir()}
	second := b.start(again).finish(backend.Completed)
	if want := "thread " + first.ThreadID + " turn 2"; second.Text != want || second.ThreadID != first.ThreadID {
		t.Errorf("the second attempt is %q in thread %s, want %q", second.Text, second.ThreadID, want)
	}
	if text, err := os.ReadFile(filepath.Join(state, "codex", "auth.json")); string(text) != `{"login":1}` {
		t.Errorf("the login is %q, %v", text, err)
	}
	// One that is not there, for example because it began on another machine, is replaced.
	again.ThreadID = "01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0"
	r := b.start(again)
	o := r.finish(backend.Completed)
	if o.ThreadID == again.ThreadID || o.Text != "thread "+o.ThreadID+" turn 1" || len(o.Attempts) != 1 {
		t.Errorf("an unknown thread: %+v", o)
	}
	r.wantReported("notice: the session of Codex app-server cannot be resumed: codex: the session cannot be opened: thread/resume: no rollout found for thread id " + again.ThreadID + " (-32600); a new one begins")
}

// A session is resumed by its runtime, whichever that is, and left to another one only when
// that is out of quota or not among those of the worker.
func TestThreadOfAnotherRuntime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Fallback = []string{"other"}
	b.Cooldowns = fallback.NewCooldowns(filepath.Join(t.TempDir(), "resting"))
	ready := func() {
		for _, token := range []string{"codex", "other"} {
			if _, err := b.Cooldowns.Clear(token); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := t.TempDir()
	first := b.start(backend.Attempt{Prompt: prompt("quota"), StateDir: state}).finish(backend.Quota)
	if first.Runtime != "other" {
		t.Fatalf("%+v", first)
	}
	ready()
	again := backend.Attempt{Prompt: prompt("thread"), StateDir: state, ThreadID: first.ThreadID, ThreadRuntime: first.Runtime}
	if o := b.start(again).finish(backend.Completed); o.Runtime != "other" || o.Text != "thread "+first.ThreadID+" turn 2" {
		t.Errorf("%+v", o)
	}
	// The runtime is out of quota when the session is resumed, and is in cooldown after that.
	// The other one knows that it is not the first.
	quota := again
	quota.Prompt = prompt("quota")
	recorded := &runs.Records{Root: t.TempDir()}
	b.Runner.Recorder = recorded
	o := b.start(quota).finish(backend.Quota)
	b.Runner.Recorder = nil
	run, err := recorded.Find(t.Context(), o.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(run.Dir, "prompt.md")); !strings.HasPrefix(string(text), "Another agent has begun this task") {
		t.Errorf("the prompt is %q, %v", text, err)
	}
	if o.Runtime != "codex" || o.ThreadID == first.ThreadID || len(o.Attempts) != 1 || o.Attempts[0].Runtime != "other" {
		t.Errorf("%+v", o)
	}
	if _, err := b.Cooldowns.Clear("codex"); err != nil {
		t.Fatal(err)
	}
	again.Prompt = prompt("thread")
	if o := b.start(again).finish(backend.Completed); o.Runtime != "codex" || len(o.Attempts) != 0 || o.ThreadID == first.ThreadID {
		t.Errorf("%+v", o)
	}
	ready()
	again.ThreadRuntime = "third"
	r := b.start(again)
	if o := r.finish(backend.Completed); o.Runtime != "codex" || o.Text != "thread "+o.ThreadID+" turn 1" {
		t.Errorf("%+v", o)
	}
	r.wantReported("notice: the session is one of third, which this worker does not run; a new one begins")
}

func TestCrashIsRetryable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if o := b.start(backend.Attempt{Prompt: prompt("die 3")}).finish(backend.Failed); !o.Retryable {
		t.Errorf("%+v", o)
	}
	if o := b.start(backend.Attempt{Prompt: prompt("fail no")}).finish(backend.Failed); o.Retryable {
		t.Errorf("a failed turn: %+v", o)
	}
}

func TestTimeoutEndsTheAttempt(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("hang"), Timeout: time.Second})
	o := r.finish(backend.TimedOut)
	if o.Retryable || o.Err.Error() != "codex: the attempt took longer than 1s" {
		t.Errorf("%+v", o)
	}
}

func TestStopCancels(t *testing.T) {
	t.Parallel()
	t.Run("in a turn", func(t *testing.T) {
		t.Parallel()
		r := newBench(t).start(backend.Attempt{Prompt: prompt("hang")})
		r.await("notice: Codex app-server turn started")
		if o := r.Stop(context.Background(), "no longer needed"); o.Result != backend.Canceled || !strings.Contains(o.Err.Error(), "no longer needed") {
			t.Errorf("%+v", o)
		}
		n := len(r.reported())
		if o := r.Stop(context.Background(), "again"); o.Result != backend.Canceled || len(r.reported()) != n {
			t.Errorf("the second stop: %+v", o)
		}
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		r := newBench(t).start(backend.Attempt{Prompt: prompt("hang")})
		if o := r.Stop(context.Background(), "no"); o.Result != backend.Canceled {
			t.Errorf("%+v", o)
		}
	})
	t.Run("by the context", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		r := &running{t: t, changed: make(chan struct{})}
		var err error
		if r.Running, err = b.Start(ctx, backend.Attempt{Workdir: b.workdir, Prompt: prompt("hang")}, r.listener()); err != nil {
			t.Fatal(err)
		}
		r.await("notice: Codex app-server turn started")
		cancel()
		r.finish(backend.Canceled)
	})
}

func TestInterruptEndsTheTurn(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("hang")})
	r.await("notice: Codex app-server turn started")
	if err := r.Interrupt(t.Context()); err != nil {
		t.Error(err)
	}
	r.finish(backend.Canceled)
}

func TestAskContinuesTheConversation(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{Prompt: prompt("say done")})
	<-r.Done()
	if answer, err := r.Ask(t.Context(), prompt("say closed")); answer != "closed" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Ask(ctx, prompt("hang")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a closeout that takes too long: %v", err)
	}
	if answer, err := r.Ask(t.Context(), prompt("say after that")); answer != "after that" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	if o := r.finish(backend.Completed); o.Text != "done" {
		t.Errorf("the outcome is %q", o.Text)
	}
	if _, err := r.Ask(t.Context(), prompt("say more")); !errors.Is(err, backend.ErrOver) {
		t.Errorf("after the end: %v", err)
	}
}

func TestFallbackGetsTheSamePrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Fallback = []string{"other"}
	// The first runtime gets guidance and is then out of quota.
	r := b.start(backend.Attempt{Prompt: prompt("guide"), Model: "gpt"})
	if _, err := r.Say(t.Context(), prompt("env TRIED", "quota")); err != nil {
		t.Error(err)
	}
	o := r.finish(backend.Quota)
	if o.Runtime != "other" || len(o.Attempts) != 1 || o.Attempts[0].Runtime != "codex" || o.Attempts[0].Kind != "quota" {
		t.Errorf("%+v", o)
	}
	r.wantReported("notice: codex: usage limit reached; trying other", "notice: live guidance delivered to Other CLI session")
	b.Fallback = nil
	b.start(backend.Attempt{Prompt: prompt("logout")}).finish(backend.Unauthenticated)
}

// In the middle of a turn another runtime continues in the same folder, and knows so.
func TestFallbackContinuesChangedWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Fallback = []string{"other"}
	b.Cooldowns = fallback.NewCooldowns(filepath.Join(t.TempDir(), "resting"))
	// The first runtime is out of quota after its change. The other one does the same and
	// is out of quota too.
	o := b.start(backend.Attempt{Prompt: prompt("write begun x", "quota")}).finish(backend.Quota)
	if o.Runtime != "other" || len(o.Attempts) != 1 || o.Attempts[0].Kind != "quota" || o.Err.Error() != "other: usage limit reached" {
		t.Errorf("%+v", o)
	}
	for _, token := range []string{"codex", "other"} {
		if c, resting, err := b.Cooldowns.Get(token, time.Now()); !resting || err != nil || c.Kind != "quota" {
			t.Errorf("%s: %+v, %v", token, c, err)
		}
	}
	// Where all are in cooldown, all are tried; a success clears it.
	if o := b.start(backend.Attempt{Prompt: prompt("say hello")}).finish(backend.Completed); o.Runtime != "codex" {
		t.Errorf("%+v", o)
	}
	if _, resting, _ := b.Cooldowns.Get("codex", time.Now()); resting {
		t.Error("codex is in cooldown after a success")
	}
	if o := b.start(backend.Attempt{Prompt: prompt("quota")}).finish(backend.Quota); o.Runtime != "codex" || len(o.Attempts) != 0 {
		t.Errorf("a runtime in cooldown was tried: %+v", o)
	}
	_, err := b.Cooldowns.Clear("other")
	if o := b.start(backend.Attempt{Prompt: prompt("say hello")}).finish(backend.Completed); o.Runtime != "other" || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

// The agent has the task's variables, not the worker's token, and no secret is reported.
func TestAgentHasNoTokenOfTheWorker(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(backend.Attempt{
		Prompt: prompt("env BUS_API_TOKEN", "env MY_TOKEN", "run 0 curl sk-very-secret", "ask curl sk-very-secret", "env NAME"),
		Env:    []string{"MY_TOKEN=sk-very-secret", "NAME=x"}, ApprovalTimeout: time.Millisecond,
	})
	o := r.finish(backend.Completed)
	all := strings.Join(append(r.reported(), o.Text, o.Commands[0].Line), "\n")
	if strings.Contains(all, "BUS_API_TOKEN=***") || strings.Contains(all, "very-secret") || strings.Contains(all, "of-the-worker") || !strings.Contains(all, "MY_TOKEN=***") || !strings.Contains(all, "NAME=x") {
		t.Errorf("reported\n%s", all)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*bench, *backend.Attempt)
		want   string
	}{
		"no prompt":         {func(_ *bench, a *backend.Attempt) { a.Prompt = " " }, "the prompt is empty; nothing was started"},
		"a relative folder": {func(_ *bench, a *backend.Attempt) { a.Workdir = "x" }, `workdir "x" is not absolute; nothing was started`},
		"a relative state":  {func(_ *bench, a *backend.Attempt) { a.StateDir = "x" }, `state folder "x" is not absolute; nothing was started`},
		"a sandbox":         {func(_ *bench, a *backend.Attempt) { a.Sandbox = "none" }, `sandbox "none" is unknown; use read-only, workspace-write, danger-full-access`},
		"an effort":         {func(_ *bench, a *backend.Attempt) { a.Effort = "most" }, `model reasoning effort "most" is not one of minimal, low, medium, high, xhigh`},
		"a policy":          {func(_ *bench, a *backend.Attempt) { a.ApprovalPolicy = "untrusted" }, `approval policy "untrusted" is not supported; use on-request or never`},
		"a runtime":         {func(b *bench, _ *backend.Attempt) { b.Runtime = "none" }, `unknown runtime "none"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			a := backend.Attempt{Workdir: b.workdir, Prompt: "p"}
			c.change(b, &a)
			_, err := b.Start(t.Context(), a, backend.Listener{})
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestFallbackReplacesARuntimeThatIsNotInstalled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Fallback = []string{"other"}
	path, _ := agent.LookupEnv(b.Runner.Environ, "PATH")
	if err := os.Remove(filepath.Join(path, "codex")); err != nil {
		t.Fatal(err)
	}
	r := b.start(backend.Attempt{Prompt: prompt("guide")})
	if d, err := r.Say(t.Context(), "hello"); d != backend.Steered || err != nil { // waits for the other runtime
		t.Errorf("%q, %v", d, err)
	}
	if o := r.finish(backend.Completed); o.Runtime != "other" || o.Text != "guidance: hello" || o.Attempts[0].Kind != "not_installed" {
		t.Errorf("%+v", o)
	}
}
