package worker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/settings"
	"github.com/busdk/bus-integration-task/worktree"
)

// A site is a workspace with the repository dev, a log, and a worker for it whose agent is
// a function.
type site struct {
	t         *testing.T
	log       *memoryLog
	workspace string
	primary   string
	trees     string
	state     string
	settings  settings.Settings
	environ   []string
	limit     time.Duration  // of await; 0 is two minutes
	ask       string         // answer of the agent after the attempt; "" is not a report
	said      chan string    // by users to the agent
	tested    time.Time      // when the agent's tests ended
	replaced  string         // run record of a runtime before the agent's
	result    backend.Result // of the turn; "" is that of the agent
	refusal   error          // of the answer to an approval request
	answered  chan session.Decision

	mu       sync.Mutex
	warnings []string
	given    []backend.Attempt
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, log: newLog(), workspace: filepath.Join(dir, "workspace"), trees: filepath.Join(dir, "trees"), state: filepath.Join(dir, "state"),
		said: make(chan string, 10), answered: make(chan session.Decision, 10),
	}
	s.primary = filepath.Join(s.workspace, "dev")
	if err := os.MkdirAll(s.primary, 0o755); err != nil {
		t.Fatal(err)
	}
	s.git("init", "-q", "-b", "main")
	s.write(s.primary, "README", "one\n")
	s.git("add", ".")
	s.git("commit", "-qm", "begin")
	s.settings = settings.Settings{
		Recipient: "dev", AgentBackend: "session:stub", WorkspaceRoot: s.workspace, WorktreeRoot: s.trees,
		Worktree: true, Commit: true, CommitMessage: "task: {summary}\n\n{work_ref}", RequireCloseout: true,
		TerminalWorktrees: "remove-promoted", BlockedWorktrees: "retain",
	}
	return s
}

func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.primary
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.workspace, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@example.invalid", "GIT_COMMITTER_NAME=user", "GIT_COMMITTER_EMAIL=user@example.invalid",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %s", args, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) write(dir, name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// crashed is the answer of an agent that has crashed.
const crashed = "crashed"

// agentFunc is an agent: it works on an attempt until ctx ends and returns its answer.
type agentFunc func(ctx context.Context, a backend.Attempt, l backend.Listener) string

// Start implements backend.Backend.
func (s *site) backend(f agentFunc) backend.Backend { return fakeBackend{s, f} }

type fakeBackend struct {
	site  *site
	agent agentFunc
}

func (b fakeBackend) Start(ctx context.Context, a backend.Attempt, l backend.Listener) (backend.Running, error) {
	b.site.mu.Lock()
	b.site.given = append(b.site.given, a)
	run := fmt.Sprintf("run-%d", len(b.site.given))
	b.site.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	r := &fakeRunning{site: b.site, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		l.Opened(backend.Conversation{Runtime: "stub", ThreadID: "thread-1", Model: "model-1", RunID: run})
		answer := b.agent(ctx, a, l)
		r.outcome = backend.Outcome{
			Result: backend.Completed, Text: answer, Conversation: backend.Conversation{Runtime: "stub", ThreadID: "thread-1", Model: "model-1", RunID: run},
			Commands: []closeout.Command{{Line: "go test ./...", Passed: true, ExitCode: new(int), Ended: b.site.tested}},
		}
		if b.site.replaced != "" {
			r.outcome.Attempts = []agent.Attempt{{RunID: b.site.replaced}}
		}
		if b.site.result != "" {
			r.outcome.Result, r.outcome.Err = b.site.result, errors.New("the turn ended so")
		}
		switch {
		case ctx.Err() != nil:
			r.outcome.Result, r.outcome.Err = backend.Canceled, ctx.Err()
		case answer == crashed:
			r.outcome.Result, r.outcome.Err, r.outcome.Retryable = backend.Failed, errors.New("the agent died"), true
		}
	}()
	return r, nil
}

type fakeRunning struct {
	site    *site
	cancel  func()
	done    chan struct{}
	outcome backend.Outcome
}

func (r *fakeRunning) Say(_ context.Context, text string) (backend.Delivery, error) {
	r.site.said <- text
	return backend.Steered, nil
}

func (r *fakeRunning) Answer(_ context.Context, id string, d session.Decision) error {
	r.site.answered <- d
	return r.site.refusal
}
func (r *fakeRunning) Interrupt(context.Context) error             { return nil }
func (r *fakeRunning) Done() <-chan struct{}                       { return r.done }
func (r *fakeRunning) Outcome() backend.Outcome                    { <-r.done; return r.outcome }
func (r *fakeRunning) Ask(context.Context, string) (string, error) { return r.site.ask, nil }
func (r *fakeRunning) Stop(_ context.Context, _ string) backend.Outcome {
	r.cancel()
	<-r.done
	return r.outcome
}

// run lets a worker work on the task bus#1.1 until it is in a state that wanted accepts.
func (s *site) run(f agentFunc, wanted func(task.State) bool) task.State {
	s.t.Helper()
	w := newWorker(s.log, "w", s.bridge(f))
	w.HandBack = -1
	stop := start(s.t, w)
	state := s.await(wanted)
	if err := stop(); err != nil {
		s.t.Error(err)
	}
	return state
}

func (s *site) bridge(f agentFunc) *worker.Bridge {
	return &worker.Bridge{
		Settings: s.settings, Backend: s.backend(f), State: s.state, Environ: s.environ, Logger: slog.New(slog.NewTextHandler(s, nil)),
	}
}

// Write takes a line of the log.
func (s *site) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, string(line))
	return len(line), nil
}

// await waits until the task is in a state that wanted accepts.
func (s *site) await(wanted func(task.State) bool) task.State {
	s.t.Helper()
	limit := time.After(cmp.Or(s.limit, 2*time.Minute))
	for {
		s.log.mu.Lock()
		grown := s.log.grown
		s.log.mu.Unlock()
		if state := s.log.state("bus#1.1"); wanted(state) {
			return state
		}
		select {
		case <-grown:
		case <-limit:
			s.t.Fatalf("the task is %+v; warnings %q", s.log.state("bus#1.1"), s.warnings)
		}
	}
}

func ended(s task.State) bool { return s.Status.Ended() }

// leftTrees returns the worktrees that exist.
func (s *site) leftTrees() []string {
	var left []string
	entries, err := os.ReadDir(s.trees)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			left = append(left, e.Name())
		}
	}
	return left
}

func report(complete bool, files ...string) string {
	return fmt.Sprintf(`All done. {"task_complete":%v,"status":"done","summary":"add a file","changed_files":["%s"],"plan_closed":false,"no_matching_plan_item":true,"no_matching_plan_reason":"there is no PLAN.md","required_checks":[{"command":"go test ./...","result":"pass","reason":""}],"remaining_blockers":[]}`,
		complete, strings.Join(files, `","`))
}

// add is an agent that adds a file and reports so.
func add(t *testing.T, text string) agentFunc {
	return func(_ context.Context, a backend.Attempt, l backend.Listener) string {
		l.Message("I add a file")
		if err := os.WriteFile(filepath.Join(a.Workdir, "new.txt"), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
		return report(true, "new.txt")
	}
}

func TestTaskIsPromoted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	state := s.run(add(t, "two\n"), ended)
	if state.Status != task.StatusDone || state.End.Text != "add a file" || state.End.RunID != "run-1" || state.Thread.ID != "thread-1" {
		t.Errorf("%+v; warnings %q", state, s.warnings)
	}
	if got := s.git("log", "--format=%s|%b|%H", "-1"); got != "task: add a file|bus#1.1\n|"+state.End.Commit && !strings.HasSuffix(got, state.End.Commit) {
		t.Errorf("the primary is at %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(s.primary, "new.txt")); string(text) != "two\n" {
		t.Errorf("new.txt is %q, %v", text, err)
	}
	if s.git("status", "--porcelain") != "" || s.git("branch", "--format=%(refname:short)") != "main" || len(s.leftTrees()) > 0 {
		t.Errorf("left: %q, %q, %q", s.git("status", "--porcelain"), s.git("branch"), s.leftTrees())
	}
	if n := strings.Count(s.given[0].Prompt, "fix bus#1.1"); n != 1 || !strings.Contains(s.given[0].Prompt, closeout.Instruction) {
		t.Errorf("the prompt is %q", s.given[0].Prompt)
	}
	var announced []string
	_ = s.log.Read(t.Context(), "bus#1.1", "", func(e task.Event) error {
		if e.Name == task.Progress && e.Commit != "" {
			announced = append(announced, e.Commit)
		}
		return nil
	})
	if !slices.Equal(announced, []string{state.End.Commit}) {
		t.Errorf("announced: %q", announced)
	}
	end := s.last(task.Done)
	if len(end.Attachments) != 1 || !strings.Contains(end.Attachments[0].Content, "+two") || !strings.Contains(string(end.Evidence), state.End.Commit) ||
		!strings.Contains(string(end.Closeout), `"agent_id":"dev"`) || end.Labels.ObservedModel != "model-1" {
		t.Errorf("%+v", end)
	}
}

// last returns the last event with a name.
func (s *site) last(name string) task.Event {
	s.t.Helper()
	var found task.Event
	_ = s.log.Read(s.t.Context(), "bus#1.1", "", func(e task.Event) error {
		if e.Name == name {
			found = e
		}
		return nil
	})
	return found
}

func TestTaskIsBlocked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare  func(s *site)
		agent    func(t *testing.T) agentFunc
		reason   string
		branches bool // the work is kept
	}{
		"no change": {nil, func(*testing.T) agentFunc {
			return func(context.Context, backend.Attempt, backend.Listener) string { return report(true, "new.txt") }
		}, "produced no worktree changes", false},
		"no closeout": {nil, func(t *testing.T) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				return "done"
			}
		}, "closeout", true},
		"another change than reported": {nil, func(t *testing.T) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				return report(true, "other.txt")
			}
		}, "other.txt", true},
		"a dirty primary":   {func(s *site) { s.write(s.primary, "README", "mine\n") }, func(t *testing.T) agentFunc { return add(t, "x") }, "cannot be promoted", true},
		"a file in the way": {func(s *site) { s.write(s.primary, "new.txt", "mine\n") }, func(t *testing.T) agentFunc { return add(t, "x") }, "cannot be promoted", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			before := s.git("rev-parse", "HEAD")
			create(s.log, "bus#1.1")
			state := s.run(c.agent(t), ended)
			if state.Status != task.StatusBlocked || !strings.Contains(state.End.Text, c.reason) || state.End.Commit != "" {
				t.Errorf("%+v; warnings %q", state.End, s.warnings)
			}
			if s.git("rev-parse", "HEAD") != before {
				t.Error("the primary has moved")
			}
			if kept := len(s.leftTrees()) > 0; kept != c.branches {
				t.Errorf("worktrees %q", s.leftTrees())
			}
			if !c.branches && s.log.count("bus#1.1", task.Message) == 0 {
				t.Error("the removal is not reported")
			}
		})
	}
}

// A task whose primary was moved by another task meanwhile is blocked with its branch
// kept. With the setting it is rebased, which its evidence says.
func TestTaskAfterAnotherOne(t *testing.T) {
	t.Parallel()
	for _, rebase := range []bool{false, true} {
		t.Run(fmt.Sprint(rebase), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.Rebase = rebase
			create(s.log, "bus#1.1")
			state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				s.promoteAnother(ctx)
				return add(t, "two\n")(ctx, a, l)
			}, ended)
			head, branches := s.git("rev-parse", "HEAD"), strings.Fields(s.git("branch", "--format=%(refname:short)"))
			if !rebase {
				if state.Status != task.StatusBlocked || len(branches) != 2 || state.End.Commit != "" || strings.Contains(string(s.last(task.Blocked).Evidence), "rebased_from") {
					t.Errorf("%+v, %q", state.End, branches)
				}
				return
			}
			if state.Status != task.StatusDone || state.End.Commit != head || len(branches) != 1 || len(s.leftTrees()) > 0 {
				t.Errorf("%+v, %q, %q; warnings %q", state.End, branches, s.leftTrees(), s.warnings)
			}
			_, tested, ok := strings.Cut(s.git("log", "-1", "--format=%B"), "Rebased-from: ")
			if !ok || !strings.Contains(string(s.last(task.Done).Evidence), `"rebased_from":"`+tested+`"`) {
				t.Errorf("tested %q, evidence %s", tested, s.last(task.Done).Evidence)
			}
		})
	}
}

// promoteAnother promotes the work of another task.
func (s *site) promoteAnother(ctx context.Context) {
	r, err := worktree.Open(ctx, s.primary, worktree.Config{Workspace: s.workspace, State: s.state})
	if err != nil {
		s.t.Error(err)
		return
	}
	w, err := r.Add(ctx, worktree.Options{Root: s.trees})
	if err != nil {
		s.t.Error(err)
		return
	}
	s.write(w.Path(), "another", "1\n")
	if _, err := w.Commit(ctx, "", "another", worktree.Identity{}); err != nil {
		s.t.Error(err)
	}
	if _, err := w.Promote(ctx, false, nil); err != nil {
		s.t.Error(err)
	}
	if err := w.Remove(ctx, true); err != nil {
		s.t.Error(err)
	}
}

// Users steer a turn, answer its requests, and cancel it.
func TestTaskIsSteered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	agent := func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		l.ApprovalRequested(backend.Approval{ID: "7", Kind: "command", Summary: "make test"})
		l.Message("got: " + <-s.said + ", " + string(<-s.answered))
		<-ctx.Done()
		return ""
	}
	go func() {
		s.await(func(state task.State) bool { return len(state.Approvals) == 1 })
		s.log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: "faster"})
		s.log.post(task.ApprovalAnswered, task.Payload{WorkRef: "bus#1.1", ApprovalID: "7", Decision: "accept_for_session"})
		s.await(func(task.State) bool { return s.last(task.Message).Text == "got: faster, accept_for_session" })
		s.log.post(task.Canceled, task.Payload{WorkRef: "bus#1.1"})
	}()
	state := s.run(agent, ended)
	if state.Status != task.StatusCanceled || len(s.leftTrees()) > 0 || s.git("branch", "--format=%(refname:short)") != "main" {
		t.Errorf("%+v, %q, %q", state, s.leftTrees(), s.git("branch"))
	}
}

// The result of a worker that was lost after its commit was promoted is not made again.
func TestPromotedCommitIsRecovered(t *testing.T) {
	t.Parallel()
	for name, landed := range map[string]bool{"promoted": true, "not promoted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			commit := strings.Repeat("a", 40)
			if landed {
				commit = s.git("rev-parse", "HEAD")
			}
			create(s.log, "bus#1.1")
			s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 1})
			s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", Commit: commit})
			state := s.run(add(t, "two\n"), ended)
			if state.Status != task.StatusDone || (state.End.Commit == commit) != landed || (len(s.given) == 0) != landed {
				t.Errorf("%+v, %d attempts; warnings %q", state.End, len(s.given), s.warnings)
			}
		})
	}
}

// Secrets reach the agent, never the log.
func TestNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const secret = "sk-0123456789abcdef"
	secrets := filepath.Join(s.workspace, "..", "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(secrets, "team", secret+"\n")
	s.settings.AuthMode, s.settings.CredentialRef, s.settings.DeploymentSecrets = "openai-api-key", "team", secrets
	s.environ = []string{"MY_TOKEN=tok-0123456789abcdef"}
	create(s.log, "bus#1.1")
	state := s.run(add(t, "tok-0123456789abcdef\n"+secret+"\n"), ended)
	if state.Status != task.StatusDone || len(s.given) != 1 || !strings.Contains(strings.Join(s.given[0].Env, " "), secret) {
		t.Errorf("%+v, %+v", state, s.given)
	}
	if all := fmt.Sprintf("%+v %s", s.log.events, s.last(task.Done).Evidence); strings.Contains(all, secret) || strings.Contains(all, "tok-0123456789abcdef") {
		t.Errorf("a secret is in %s", all)
	}
}

// A worktree of a superproject has links to its other modules, and the backend gets the
// folder that they are in.
func TestBackendGetsDependencies(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{true, false} {
		s := newSite(t)
		s.settings.ReadOnlyDeps = linked
		if err := os.Mkdir(filepath.Join(s.workspace, "other"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(s.workspace, ".gitmodules", "[submodule \"other\"]\n\tpath = other\n[submodule \"dev\"]\n\tpath = dev\n")
		create(s.log, "bus#1.1")
		s.run(func(_ context.Context, a backend.Attempt, _ backend.Listener) string {
			folder := filepath.Dir(a.Workdir)
			other, err := filepath.EvalSymlinks(filepath.Join(folder, "other"))
			if linked && (a.Surroundings != folder || other != filepath.Join(s.workspace, "other")) || !linked && a.Surroundings != "" {
				t.Errorf("linked %v: surroundings %q of %s, other is %q, %v", linked, a.Surroundings, a.Workdir, other, err)
			}
			return report(true)
		}, ended)
	}
}

func TestRecipientWithoutRepository(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings.WorkspaceRoot = s.primary
	create(s.log, "bus#1.1")
	if state := s.run(nil, ended); state.Status != task.StatusFailed || !strings.Contains(state.End.Text, "dev") {
		t.Errorf("%+v", state.End)
	}
}

// slowStart is a backend that has not started when the worker stops.
type slowStart struct{ starting chan struct{} }

func (s slowStart) Start(ctx context.Context, _ backend.Attempt, _ backend.Listener) (backend.Running, error) {
	close(s.starting)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A task does not fail because its worker was stopped.
func TestStoppedAttemptIsHandedBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	agent := slowStart{make(chan struct{})}
	w := newWorker(s.log, "w", &worker.Bridge{Settings: s.settings, Backend: agent, State: s.state})
	w.HandBack = -1
	stop := start(t, w)
	<-agent.starting
	if err := stop(); err != nil {
		t.Error(err)
	}
	if state := s.log.state("bus#1.1"); state.Status != task.StatusOpen || s.last(task.Released).Text != "handed back: "+worker.ErrStopping.Error() {
		t.Errorf("%+v", state)
	}
}
