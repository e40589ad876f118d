package worker_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
)

func evidenceOf(t *testing.T, e task.Event) (got closeout.Evidence) {
	t.Helper()
	if err := json.Unmarshal(e.Evidence, &got); err != nil {
		t.Errorf("evidence %q: %v", e.Evidence, err)
	}
	return got
}

// lose adds an attempt of another worker that is lost after it announced a commit.
func (s *site) lose(commit string) {
	used := task.Labels{WorkerProfile: "large", ObservedModel: "model-0"}
	s.log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 1})
	s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", RunID: "run-0", Labels: used})
	s.log.post(task.Progress, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", Commit: commit})
}

// A task that another attempt has promoted ends with the labels and the run of that one.
func TestRecoveredTaskHasEvidence(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings.WorkerProfile = "small"
	create(s.log, "bus#1.1")
	commit := s.git("rev-parse", "HEAD")
	s.lose(commit)
	s.run(add(t, "two\n"), ended)
	end := s.last(task.Done)
	got := evidenceOf(t, end)
	want := task.Labels{WorkerProfile: "large", ObservedModel: "model-0"}
	if end.Labels != want || got.Labels != want || got.Commit != commit || got.RunID != "run-0" || end.RunID != "run-0" || got.Outcome != closeout.Done || got.Reason != end.Text {
		t.Errorf("end %+v, evidence %+v", end, got)
	}
}

// Ends without work of an agent have evidence too.
func TestFailedTaskHasEvidence(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	create(s.log, "bus#1.1")
	s.settings.WorkspaceRoot = s.primary
	s.run(nil, ended)
	end := s.last(task.Failed)
	if got := evidenceOf(t, end); got.Outcome != closeout.Failed || got.NoChangeReason != end.Text || got.WorkRef != "bus#1.1" {
		t.Errorf("end %+v, evidence %+v", end, got)
	}
}

func TestUnpromotedCommitIsInTheEvidence(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(s.primary, "README", "mine\n")
	create(s.log, "bus#1.1")
	s.run(add(t, "two\n"), ended)
	got := evidenceOf(t, s.last(task.Blocked))
	if got.Commit != "" || got.BranchCommit == "" || got.BranchCommit != s.git("rev-parse", got.Branch) || got.NoChangeReason != "" {
		t.Errorf("%+v", got)
	}
}

// The evidence names the run records of agents that crashed and of runtimes that were
// replaced in the attempt.
func TestEvidenceHasEveryRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings.SafeCrashRetries = 1
	s.replaced = "run-of-another-runtime"
	create(s.log, "bus#1.1")
	n := 0
	s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		if n++; n == 1 {
			return crashed
		}
		return add(t, "two\n")(ctx, a, l)
	}, ended)
	got := evidenceOf(t, s.last(task.Done))
	if got.RunID != "run-2" || !slices.Equal(got.RunIDs, []string{s.replaced, "run-1", "run-2"}) {
		t.Errorf("%+v", got)
	}
}
