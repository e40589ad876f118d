package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worktree"
)

// onSpan calls f when a span with a name begins.
type onSpan struct {
	name string
	f    func()
}

func (s onSpan) OnStart(_ context.Context, span sdk.ReadWriteSpan) {
	if span.Name() == s.name {
		s.f()
	}
}
func (onSpan) OnEnd(sdk.ReadOnlySpan)           {}
func (onSpan) Shutdown(context.Context) error   { return nil }
func (onSpan) ForceFlush(context.Context) error { return nil }

// Files that a process of the task changes after the work was judged are not committed.
func TestJudgedFilesAreCommitted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	before := s.git("rev-parse", "HEAD")
	w := newWorker(s.log, "w", s.bridge(add(t, "two\n")))
	w.Tracers = sdk.NewTracerProvider(sdk.WithSpanProcessor(onSpan{"commit", func() { s.write(s.given[0].Workdir, "later.sh", "") }}))
	stop := start(t, w)
	state := s.await(ended)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if state.Status != task.StatusBlocked || !strings.Contains(state.End.Text, "have changed since") || s.git("rev-parse", "HEAD") != before || len(s.leftTrees()) != 1 {
		t.Errorf("%+v; worktrees %q; log %q", state.End, s.leftTrees(), s.warnings)
	}
}

// Work that was committed and could not be promoted is promoted when its task is reopened.
func TestCommittedWorkIsPromotedLater(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(s.primary, "README", "mine\n")
	create(s.log, "bus#1.1")
	if state := s.run(add(t, "two\n"), ended); state.Status != task.StatusBlocked || len(s.leftTrees()) != 1 {
		t.Fatalf("%+v; worktrees %q", state.End, s.leftTrees())
	}
	s.write(s.primary, "README", "one\n")
	s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "the checkout is clean", WorktreeID: s.leftTrees()[0], ReuseWorktree: true})
	state := s.run(add(t, "two\n"), secondEnd)
	if state.Status != task.StatusDone || state.End.Commit != s.git("rev-parse", "HEAD") || len(s.leftTrees()) != 0 {
		t.Errorf("%+v; worktrees %q; log %q", state.End, s.leftTrees(), s.warnings)
	}
}

func secondEnd(s task.State) bool { return s.Round == 2 && s.Status.Ended() }

// stopInTurn lets a worker work on the task until its agent has begun, and stops it.
func (s *site) stopInTurn(f agentFunc) {
	s.t.Helper()
	begun := make(chan struct{})
	w := newWorker(s.log, "w", s.bridge(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		f(ctx, a, l)
		close(begun)
		<-ctx.Done()
		return ""
	}))
	w.HandBack = -1
	stop := start(s.t, w)
	<-begun
	if err := stop(); err != nil {
		s.t.Error(err)
	}
}

// Work that is not promoted is kept, however the attempt ends, and the end names it.
func TestWorkIsKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		agent  func(s *site) agentFunc
		end    string // event with the worktree; "" for none
		status task.Status
	}{
		"blocked": {func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				return report(false, "new.txt")
			}
		}, task.Blocked, task.StatusBlocked},
		"cannot be measured": {func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				if err := os.MkdirAll(filepath.Join(a.Workdir, "nested", ".git"), 0o755); err != nil {
					t.Error(err)
				}
				return add(t, "x")(ctx, a, l)
			}
		}, task.Failed, task.StatusFailed},
		"crashed": {func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				return crashed
			}
		}, task.Failed, task.StatusFailed},
		"canceled": {func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "x")(ctx, a, l)
				s.log.post(task.Canceled, task.Payload{WorkRef: "bus#1.1"})
				<-ctx.Done()
				return ""
			}
		}, "", task.StatusCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			create(s.log, "bus#1.1")
			state := s.run(row.agent(s), ended)
			left := s.leftTrees()
			if state.Status != row.status || len(left) != 1 {
				t.Fatalf("%+v; worktrees %q; log %q", state.End, left, s.warnings)
			}
			if text, err := os.ReadFile(filepath.Join(s.trees, left[0], "dev", "new.txt")); string(text) != "x" {
				t.Errorf("new.txt is %q, %v", text, err)
			}
			if row.end == "" {
				return
			}
			if p := s.last(row.end).Payload; p.WorktreeID != left[0] || !p.ReuseWorktree || p.Branch != "task/"+left[0] || p.BaseBranch != "main" {
				t.Errorf("the end is %+v", p)
			}
			s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "continue"})
			state = s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				_ = os.RemoveAll(filepath.Join(a.Workdir, "nested"))
				return add(t, "two\n")(ctx, a, l)
			}, secondEnd)
			if state.Status != task.StatusDone || s.given[1].Workdir != s.given[0].Workdir || len(s.leftTrees()) > 0 {
				t.Errorf("%+v in %s; worktrees %q; log %q", state.End, s.given[1].Workdir, s.leftTrees(), s.warnings)
			}
		})
	}
}

// An attempt that is handed back is continued in its worktree. Without changes the worktree
// is removed, and the agent learns that it has a new one.
func TestHandedBackWorkIsContinued(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]bool{"changed": true, "unchanged": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.BlockedWorktrees = "remove"
			create(s.log, "bus#1.1")
			s.stopInTurn(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				if changed {
					add(t, "x")(ctx, a, l)
				}
				return ""
			})
			if released := s.last(task.Released); (released.WorktreeID != "") != changed || released.ReuseWorktree != changed || released.ThreadID == "" || len(s.leftTrees()) > 0 != changed {
				t.Errorf("%+v; worktrees %q", released, s.leftTrees())
			}
			state := s.run(add(t, "two\n"), ended)
			next := s.given[1]
			if state.Status != task.StatusDone || (next.Workdir == s.given[0].Workdir) != changed || next.ThreadID != "thread-1" || strings.Contains(next.Prompt, "is a new checkout") == changed {
				t.Errorf("%+v, %+v; log %q", state.End, next, s.warnings)
			}
			if len(s.leftTrees()) > 0 || s.git("branch", "--format=%(refname:short)") != "main" {
				t.Errorf("worktrees %q, branches %q", s.leftTrees(), s.git("branch"))
			}
		})
	}
}

// The new branch of a task is continued by its next attempt.
func TestNewBranchIsContinued(t *testing.T) {
	t.Parallel()
	created := task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "fix", Branch: "work/x", CreateBranch: true}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		r, err := worktree.Open(t.Context(), s.primary, worktree.Config{Workspace: s.workspace, State: s.state})
		if err != nil {
			t.Fatal(err)
		}
		w, err := r.Add(t.Context(), worktree.Options{Root: s.trees, Ref: "bus#1.1", Branch: "work/x", CreateBranch: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil { // as the kernel does it
			t.Fatal(err)
		}
		s.log.post(task.Created, created)
		if state := s.run(add(t, "two\n"), ended); state.Status != task.StatusDone || len(s.leftTrees()) > 0 || s.git("branch", "--format=%(refname:short)") != "main" {
			t.Errorf("%+v; worktrees %q, branches %q", state.End, s.leftTrees(), s.git("branch"))
		}
	})
	t.Run("reopened", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.log.post(task.Created, created)
		s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
			add(t, "x")(ctx, a, l)
			return report(false, "new.txt")
		}, ended)
		s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "continue"})
		if state := s.run(add(t, "two\n"), secondEnd); state.Status != task.StatusDone || s.git("branch", "--format=%(refname:short)") != "main" {
			t.Errorf("%+v; branches %q", state.End, s.git("branch"))
		}
	})
}

// A user's branch that a task works on is kept.
func TestBranchOfUserIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.git("branch", "feature", s.git("commit-tree", "-p", "main", "-m", "mine", "main^{tree}"))
	tip := s.git("rev-parse", "feature")
	s.log.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "look", Branch: "feature"})
	state := s.run(func(context.Context, backend.Attempt, backend.Listener) string { return "nothing" }, ended)
	if state.Status != task.StatusBlocked || s.git("rev-parse", "feature") != tip || len(s.leftTrees()) > 0 {
		t.Errorf("%+v; feature is at %s; worktrees %q", state.End, s.git("rev-parse", "feature"), s.leftTrees())
	}
}

// A commit that was promoted is found on the branch that it was announced for, whatever
// the checkout is on since.
func TestPromotedCommitIsRecoveredFromItsBranch(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"checkout", "-q", "-b", "other", "HEAD~1"}, {"checkout", "-q", "--detach", "HEAD~1"}} {
		t.Run(args[2], func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			create(s.log, "bus#1.1")
			s.git("commit", "-q", "--allow-empty", "-m", "promoted")
			commit := s.git("rev-parse", "HEAD")
			s.git(args...)
			s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 1})
			s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", Commit: commit, BaseBranch: "main"})
			if state := s.run(add(t, "two\n"), ended); state.Status != task.StatusDone || state.End.Commit != commit || len(s.given) > 0 {
				t.Errorf("%+v after %d attempts; log %q", state.End, len(s.given), s.warnings)
			}
		})
	}
}

// A commit is promoted although its worker was killed before the checkout followed, and a
// user has changed its files since: the task is done, and says what the user must do.
func TestPromotedCommitIsRecoveredBehindEdits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	old := s.git("rev-parse", "main")
	s.write(s.primary, "README", "two\n")
	s.git("commit", "-qam", "promoted")
	commit := s.git("rev-parse", "main")
	s.git("reset", "-q", "--hard", old)
	s.git("update-ref", "refs/heads/main", commit)
	s.write(s.primary, ".git/bus-task-promotion.json", `{"branch":"main","old":"`+old+`","new":"`+commit+`"}`)
	s.write(s.primary, "README", "mine\n")
	create(s.log, "bus#1.1")
	s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 1})
	s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", Commit: commit, BaseBranch: "main"})
	state := s.run(add(t, "three\n"), ended)
	if state.Status != task.StatusDone || state.End.Commit != commit || len(s.given) > 0 {
		t.Errorf("%+v after %d attempts; log %q", state.End, len(s.given), s.warnings)
	}
	if said := s.last(task.Message).Text; !strings.Contains(said, "1 of its files have changed since (README)") || s.git("status", "--porcelain") == "" {
		t.Errorf("%q, status %q", said, s.git("status", "--porcelain"))
	}
}

// While a stopped process holds the repository, it may still promote what it has announced:
// the task is handed back until that is known.
func TestLockedRepositoryDoesNotEndTheTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		create(s.log, "bus#1.1")
		commit := s.git("commit-tree", "-p", "main", "-m", "announced", "main^{tree}")
		s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 1})
		s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", Commit: commit, BaseBranch: "main"})
		lock, err := os.Create(filepath.Join(s.primary, ".git", "bus-task.lock"))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		stop := start(t, newWorker(s.log, "w", s.bridge(add(t, "two\n"))))
		s.await(func(task.State) bool { return s.last(task.Released).ID != "" })
		s.git("update-ref", "refs/heads/main", commit) // it continues
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		state := s.await(ended)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if state.Status != task.StatusDone || state.End.Commit != commit || len(s.given) > 0 {
			t.Errorf("%+v after %d attempts; log %q", state.End, len(s.given), s.warnings)
		}
	})
}

// A process that is stopped while it announces must not promote once its lease has run out.
func TestAnnouncementAfterTheLeaseFails(t *testing.T) {
	t.Parallel()
	log := newLog()
	create(log, "bus#1.1")
	w := newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
		if err := c.Announce(ctx, strings.Repeat("a", 40), "main"); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Announce = %v, want ErrLost", err)
		}
		return worker.End{Name: task.Failed}
	}))
	w.Lease, w.Once = time.Second, true
	log.offline = func(name string) error {
		if name == task.Progress {
			time.Sleep(2 * w.Lease) // it is stopped
		}
		return nil
	}
	if err := w.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if last := log.events[len(log.events)-1]; last.Name != task.Progress { // the claim is lost
		t.Errorf("the attempt has ended the task: %+v", last)
	}
}
