package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
	"github.com/busdk/bus-integration-task/worktree"
)

// TestMain plays the stub agent, and the command bus for tests of notes: this binary,
// started by a link.
func TestMain(m *testing.M) {
	stubagent.Play()
	if filepath.Base(os.Args[0]) != "bus" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, "%q\n", os.Args[1:])
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	fmt.Printf(`{"id":"note-%d"}`, info.Size())
}

// An agent that crashed is replaced by another in a new worktree, as often as allowed.
func TestCrashedAgentIsReplaced(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]task.Status{0: task.StatusFailed, 1: task.StatusDone} {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.SafeCrashRetries = retries
			create(s.log, "bus#1.1")
			state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				if len(s.given) == 1 {
					s.write(a.Workdir, "junk", "of the crash\n")
					l.ApprovalRequested(backend.Approval{ID: "3", Kind: "command"})
					return crashed
				}
				return add(t, "two\n")(ctx, a, l)
			}, ended)
			if state.Status != want || len(s.given) != retries+1 {
				t.Fatalf("%+v after %d tries; log %q", state.End, len(s.given), s.warnings)
			}
			if retries == 0 {
				return
			}
			if s.git("ls-files") != "README\nnew.txt" || len(s.leftTrees()) > 0 {
				t.Errorf("files %q, worktrees %q", s.git("ls-files"), s.leftTrees())
			}
			if a := s.given[1]; a.ApprovalsBefore != 3 || a.Labels.Previous != "run-1" {
				t.Errorf("the second try has %+v", a)
			}
		})
	}
}

func TestWorktreesAreKeptAsThePolicySays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal, blocked string
		complete          bool
		result            backend.Result
		want              task.Status
		kept              int
	}{
		"done, remove":      {"remove-promoted", "retain", true, "", task.StatusDone, 0},
		"done, retain":      {"retain", "remove", true, "", task.StatusDone, 1},
		"blocked, retain":   {"remove-promoted", "retain", false, "", task.StatusBlocked, 1},
		"blocked, remove":   {"retain", "remove", false, "", task.StatusBlocked, 0},
		"failed, retain":    {"remove-promoted", "retain", true, backend.Failed, task.StatusFailed, 1},
		"failed, remove":    {"retain", "remove", true, backend.Failed, task.StatusFailed, 0},
		"timed out, retain": {"remove-promoted", "retain", true, backend.TimedOut, task.StatusFailed, 1},
		"timed out, remove": {"retain", "remove", true, backend.TimedOut, task.StatusFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.TerminalWorktrees, s.settings.BlockedWorktrees, s.result = c.terminal, c.blocked, c.result
			create(s.log, "bus#1.1")
			state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				return report(c.complete, "new.txt")
			}, ended)
			if left := s.leftTrees(); len(left) != c.kept || state.Status != c.want {
				t.Fatalf("%s: worktrees %q", state.Status, left)
			}
			if branches := strings.Fields(s.git("branch", "--format=%(refname:short)")); c.kept == 0 && len(branches) != 1 {
				t.Errorf("branches %q", branches)
			}
			if err := s.bridge(nil).Prune(t.Context()); err != nil || len(s.leftTrees()) != c.kept {
				t.Errorf("after Prune: %q, %v", s.leftTrees(), err)
			}
		})
	}
}

// A worktree that a task continues is not lost when the attempt is handed back.
func TestReusedWorktreeSurvives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		add(t, "x")(ctx, a, l)
		return report(false, "new.txt")
	}, ended)
	id := s.leftTrees()[0]
	s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "continue", WorktreeID: id, ReuseWorktree: true})
	s.run(func(ctx context.Context, a backend.Attempt, _ backend.Listener) string {
		<-ctx.Done()
		return ""
	}, func(state task.State) bool { return state.Round == 2 && state.Status == task.StatusRunning })
	if text, err := os.ReadFile(filepath.Join(s.trees, id, "dev", "new.txt")); string(text) != "x" {
		t.Errorf("%q, %v; worktrees %q", text, err, s.leftTrees())
	}
}

// Prune removes what a lost worker has left, and nothing that is retained or in use.
func TestPruneRemovesStaleWorktreesAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, err := worktree.Open(t.Context(), s.primary, worktree.Config{Workspace: s.workspace, State: s.state})
	if err != nil {
		t.Fatal(err)
	}
	var trees []*worktree.Worktree
	for _, ref := range []string{"stale", "retained", "used"} {
		w, err := r.Add(t.Context(), worktree.Options{Root: s.trees, Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, w)
	}
	if err := errors.Join(trees[0].Close(), trees[1].Retain()); err != nil { // the kernel closes those of a process that ends
		t.Fatal(err)
	}
	if err := s.bridge(nil).Prune(t.Context()); err != nil {
		t.Error(err)
	}
	left := s.leftTrees()
	if want := []string{trees[1].ID(), trees[2].ID()}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if err := trees[2].Close(); err != nil {
		t.Error(err)
	}
}

func TestLinksToOtherModules(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.ReadOnlyDeps = on
			s.write(s.workspace, ".gitmodules", "[submodule \"dev\"]\n\tpath = dev\n[submodule \"other\"]\n\tpath = other\n")
			if err := os.Mkdir(filepath.Join(s.workspace, "other"), 0o755); err != nil {
				t.Fatal(err)
			}
			create(s.log, "bus#1.1")
			found := false
			s.run(func(_ context.Context, a backend.Attempt, _ backend.Listener) string {
				info, err := os.Stat(filepath.Join(a.Workdir, "..", "other"))
				found = err == nil && info.IsDir()
				return ""
			}, ended)
			if found != on {
				t.Errorf("the link exists: %v; log %q", found, s.warnings)
			}
		})
	}
}

// What the worker has used is in the request, in the events and in the evidence: of the
// labels of a task, the model and the effort. It does not bind the next worker.
func TestLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings.WorkerProfile, s.settings.Model, s.settings.ReasoningEffort = "small", "model-0", "high"
	s.settings.AuthMode, s.settings.CredentialKind = "chatgpt-subscription", "token-file"
	s.settings.RemoteID, s.settings.RemoteKind = "host-9", "vm"
	asked := task.Labels{WorkerProfile: "large", RequestedEffort: "low", AuthMode: "openai-api-key", CredentialSourceKind: "deployment-secret"}
	s.log.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "fix", Labels: asked})
	state := s.run(add(t, "two\n"), ended)
	want := task.Labels{
		WorkerProfile: "small", RequestedModel: "model-0", ObservedModel: "model-1", RequestedEffort: "low",
		AuthMode: "chatgpt-subscription", CredentialSourceKind: "token-file",
	}
	asked.ObservedModel = "model-1"
	if state.Used != want || state.Labels != asked {
		t.Errorf("used %+v, requested %+v", state.Used, state.Labels)
	}
	a := s.given[0]
	if a.Model != "model-0" || a.Effort != "low" || a.Tags["worker_profile"] != "small" || a.Tags["auth_mode"] != "chatgpt-subscription" || a.Tags["attempt_id"] != "w-1" {
		t.Errorf("the request is %+v", a)
	}
	end := s.last(task.Done)
	var evidence closeout.Evidence
	if err := json.Unmarshal(end.Evidence, &evidence); err != nil {
		t.Fatal(err)
	}
	if evidence.Labels != want || evidence.RemoteID != "host-9" || evidence.RemoteKind != "vm" || evidence.RunID != "run-1" || end.RunID != "run-1" || end.Labels != want {
		t.Errorf("evidence %+v, end %+v", evidence, end)
	}
}

// An attempt continues the records and the approval requests of those before.
func TestAttemptKnowsThoseBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1"})
	s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", RunID: "run-0"})
	s.log.post(task.ApprovalRequested, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", ApprovalID: "4"})
	s.log.post(task.Released, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1"})
	s.run(add(t, "two\n"), ended)
	if a := s.given[0]; a.Labels.Previous != "run-0" || a.ApprovalsBefore != 4 {
		t.Errorf("%+v", a)
	}
}

func TestReportIsAskedForOnce(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string]task.Status{
		strings.TrimPrefix(report(true, "new.txt"), "All done. "): task.StatusDone, `{"task_complete":"yes"}`: task.StatusBlocked,
	} {
		s := newSite(t)
		s.ask = ask
		create(s.log, "bus#1.1")
		state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
			add(t, "x")(ctx, a, l)
			return "I am done."
		}, ended)
		if state.Status != want {
			t.Errorf("%s: %+v; log %q", ask, state.End, s.warnings)
		}
	}
}

// withBus puts the command bus into the PATH of the worker. notes returns its calls.
func (s *site) withBus() (notes func() []string) {
	s.t.Helper()
	home := s.t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(home, "bin"), 0o700), os.Symlink(self, filepath.Join(home, "bin", "bus")))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.environ = append(s.environ, "HOME="+home, "PATH="+filepath.Join(home, "bin"), "BUS_API_TOKEN=tok-of-the-bus")
	return func() []string {
		text, err := os.ReadFile(filepath.Join(home, "notes"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func TestNotesAreInTheEvidence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		present, required bool
		want              task.Status
	}{
		"present": {true, true, task.StatusDone}, "absent": {false, false, task.StatusDone}, "absent, but required": {false, true, task.StatusBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.RequireBusNotes = c.required
			notes := func() []string { return nil }
			if c.present {
				notes = s.withBus()
			}
			create(s.log, "bus#1.1")
			state := s.run(add(t, "two\n"), ended)
			end := s.last("bus.task." + string(c.want))
			if state.Status != c.want || strings.Contains(string(end.Evidence), "note-") != c.present || strings.Contains(string(end.Closeout), `"ids":["note-`) != c.present ||
				!strings.Contains(string(end.Closeout), `"query":"module=dev task=bus#1.1 tag=agent-work-log"`) {
				t.Errorf("%+v, closeout %s, evidence %s; log %q", state.End, end.Closeout, end.Evidence, s.warnings)
			}
			if c.present && (len(notes()) != 1 || !strings.Contains(notes()[0], "fix bus#1.1: add a file; 1 changed files")) {
				t.Errorf("notes %q", notes())
			}
		})
	}
}

// An attempt of two and a half hours publishes two notes, and one at its end.
func TestNotesAreHourly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.limit = 24 * time.Hour // of virtual time
		notes := s.withBus()
		create(s.log, "bus#1.1")
		state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
			l.Progress("running: make")
			time.Sleep(150 * time.Minute)
			return add(t, "two\n")(ctx, a, l)
		}, ended)
		got := notes()
		if len(got) != 3 || !strings.Contains(got[0], "after 1h0m0s: ") || !strings.Contains(got[1], "after 2h0m0s: ") || state.Status != task.StatusDone {
			t.Errorf("notes %q; %+v; log %q", got, state.End, s.warnings)
		}
		if n := strings.Count(string(s.last(task.Done).Evidence), "note-"); n != 3 {
			t.Errorf("%d notes in the evidence", n)
		}
	})
}

func TestAlone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "locks")
	release, err := worker.Alone(folder, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Alone(folder, "dev"); !errors.Is(err, worker.ErrNotAlone) || !strings.Contains(err.Error(), "--one-worker-per-recipient") {
		t.Errorf("a second worker: %v", err)
	}
	other, err := worker.Alone(folder, "ops")
	if err != nil {
		t.Fatal(err)
	}
	other()
	release()
	if release, err = worker.Alone(folder, "dev"); err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := worker.Alone(folder, "../x"); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("a hostile name: %v", err)
	}
}

// Without a setting, worktrees and private git directories are in the user's state.
func TestDefaultFolders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	home := filepath.Join(filepath.Dir(s.workspace), "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	s.environ = []string{"HOME=" + home}
	s.settings.WorktreeRoot, s.state = "", ""
	create(s.log, "bus#1.1")
	state := s.run(add(t, "two\n"), ended)
	folder := filepath.Join(home, ".local", "state", "bus-agent")
	if state.Status != task.StatusDone || !strings.HasPrefix(s.given[0].Workdir, filepath.Join(folder, "task-worktrees")+"/") {
		t.Errorf("%+v; the worktree was %s", state.End, s.given[0].Workdir)
	}
	if info, err := os.Stat(filepath.Join(folder, "task-git")); err != nil || !info.IsDir() {
		t.Errorf("%v", err)
	}
	s = newSite(t)
	s.state = ""
	create(s.log, "bus#1.1")
	if state := s.run(nil, ended); state.Status != task.StatusFailed || !strings.Contains(state.End.Text, "HOME") {
		t.Errorf("without HOME: %+v", state.End)
	}
}
