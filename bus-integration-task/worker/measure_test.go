package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// closing is an agent that adds a file, changes the checkout and claims that it closed an
// item of the plan.
func closing(t *testing.T, change func(dir string) error) agentFunc {
	return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		add(t, "x")(ctx, a, l)
		if err := change(a.Workdir); err != nil {
			t.Error(err)
		}
		return strings.Replace(report(true, "new.txt", "PLAN.md"), `"plan_closed":false,"no_matching_plan_item":true`, `"plan_closed":true,"no_matching_plan_item":false`, 1)
	}
}

func planned(t *testing.T) *site {
	s := newSite(t)
	s.write(s.primary, "PLAN.md", "- [ ] one thing\n")
	s.git("add", ".")
	s.git("commit", "-qm", "plan")
	create(s.log, "bus#1.1")
	return s
}

func setPlan(text string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "PLAN.md"), []byte(text), 0o644) }
}

func TestPlanItemIsClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir string) error
		want   task.Status
	}{
		"checked":  {setPlan("- [x] one thing\n"), task.StatusDone},
		"reworded": {setPlan("- [ ] two things\n"), task.StatusBlocked},
		"deleted":  {func(dir string) error { return os.Remove(filepath.Join(dir, "PLAN.md")) }, task.StatusBlocked},
		"link": {func(dir string) error {
			name := filepath.Join(dir, "PLAN.md")
			if err := os.Remove(name); err != nil {
				return err
			}
			return os.Symlink("README", name)
		}, task.StatusBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := planned(t)
			if state := s.run(closing(t, c.change), ended); state.Status != c.want {
				t.Errorf("%+v", state.End)
			}
		})
	}
}

// The plan of a worktree that is used again is compared with its base, since an earlier
// attempt may have closed the item.
func TestPlanItemOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	s := planned(t)
	state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		closing(t, setPlan("- [x] one thing\n"))(ctx, a, l)
		return report(false, "new.txt", "PLAN.md")
	}, ended)
	if state.Status != task.StatusBlocked {
		t.Fatalf("%+v", state.End)
	}
	s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "continue", WorktreeID: s.leftTrees()[0], ReuseWorktree: true})
	state = s.run(closing(t, func(string) error { return nil }), func(s task.State) bool { return s.Round == 2 && s.Status.Ended() })
	if state.Status != task.StatusDone {
		t.Errorf("%+v", state.End)
	}
}

// Without a worktree, a task is done only if the checkout is as it was.
func TestReadOnlyTaskWithoutWorktree(t *testing.T) {
	t.Parallel()
	look := func(context.Context, backend.Attempt, backend.Listener) string {
		return strings.Replace(report(true, "x"), `["x"]`, `[]`, 1)
	}
	for name, c := range map[string]struct {
		prepare func(s *site)
		agent   func(s *site) agentFunc
		want    task.Status
		reason  string
	}{
		"unchanged":       {nil, func(*site) agentFunc { return look }, task.StatusDone, ""},
		"dirty as before": {func(s *site) { s.write(s.primary, "README", "mine\n") }, func(*site) agentFunc { return look }, task.StatusDone, ""},
		"changed": {nil, func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(s.t, "x")(ctx, a, l)
				return look(ctx, a, l)
			}
		}, task.StatusBlocked, "files or commits of the checkout changed"},
		"committed": {nil, func(s *site) agentFunc {
			return func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				s.git("commit", "-q", "--allow-empty", "-m", "mine")
				return look(ctx, a, l)
			}
		}, task.StatusBlocked, "files or commits of the checkout changed"},
		"not a repository": {func(s *site) {
			if err := os.RemoveAll(filepath.Join(s.primary, ".git")); err != nil {
				s.t.Error(err)
			}
		}, func(*site) agentFunc { return look }, task.StatusBlocked, "cannot be compared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.Worktree = false
			if c.prepare != nil {
				c.prepare(s)
			}
			create(s.log, "bus#1.1")
			state := s.run(c.agent(s), ended)
			if state.Status != c.want || !strings.Contains(state.End.Text, c.reason) {
				t.Errorf("%+v", state.End)
			}
		})
	}
}

// A test that ran before the last change of code proves nothing of the result, whatever the
// time of the file is set to.
func TestTestsBeforeTheLastChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	s.tested = time.Now().Add(-time.Second) // the clock of file systems is coarse
	state := s.run(func(_ context.Context, a backend.Attempt, _ backend.Listener) string {
		name := filepath.Join(a.Workdir, "new.go")
		s.write(a.Workdir, "new.go", "package x\n")
		if err := os.Chtimes(name, time.Time{}, s.tested.Add(-time.Hour)); err != nil {
			t.Error(err)
		}
		return report(true, "new.go")
	}, ended)
	if state.Status != task.StatusBlocked || !strings.Contains(state.End.Text, "no tests run after the last change: new.go") {
		t.Errorf("%+v", state.End)
	}
}

// A diff that is cut within a secret ends before it.
func TestCutDiffHasNoPartOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "supersecrettokenvalue0123456789"
	for pad := range 2 { // one of them is cut within a secret
		s := newSite(t)
		s.environ = append(s.environ, "MY_TOKEN="+secret)
		create(s.log, "bus#1.1")
		s.run(add(t, strings.Repeat("p", 16*pad)+"\n"+strings.Repeat(secret+"\n", 20_000)), ended)
		text := s.last(task.Done).Attachments[0].Content
		if !strings.Contains(text, "***") || strings.Contains(text, secret[:3]) {
			t.Errorf("the diff ends with %q", text[len(text)-40:])
		}
	}
	for _, long := range []string{strings.Repeat("x", 985), strings.Repeat("x", 995)} { // of a line of 1000 bytes
		s := newSite(t)
		s.environ = append(s.environ, "MY_TOKEN="+secret)
		create(s.log, "bus#1.1")
		s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
			return strings.Replace(add(t, "x")(ctx, a, l), "add a file", long+secret, 1)
		}, ended)
		if text := s.last(task.Done).Text; strings.Contains(text, "su") || len(text) < 900 {
			t.Errorf("the end is %q", text)
		}
	}
}
