package worker_test

import (
	"context"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/busdk/bus-integration-task/task"
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
