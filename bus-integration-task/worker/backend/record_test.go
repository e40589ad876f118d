package backend_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/runs"

	"github.com/busdk/bus-integration-task/worker/backend"
)

func TestEachAttemptHasARecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	records := &runs.Records{Root: filepath.Join(t.TempDir(), "runs"), Required: true}
	b.Runner.Recorder = records
	a := backend.Attempt{
		Prompt: prompt("say " + strings.Repeat("sk-very-secret ", 3)), Env: []string{"X_KEY=sk-very-secret"},
		Labels: backend.RecordLabels("bus-dev", "busdk#81.1", ""),
	}
	first := b.start(a).finish(backend.Completed)
	a.Labels = backend.RecordLabels("bus-dev", "busdk#81.1", first.RunID)
	second := b.start(a).finish(backend.Completed)
	for _, o := range []backend.Outcome{first, second} {
		run, err := records.Find(t.Context(), o.RunID)
		if err != nil {
			t.Fatal(err)
		}
		info := run.Info
		if info.Status != runs.StatusCompleted || info.ProjectID != "bus-dev" || !strings.HasPrefix(info.TaskID, "busdk-81-1-") || info.SessionID != o.ThreadID || !info.Session {
			t.Errorf("%+v", info)
		}
	}
	if run, _ := records.Find(t.Context(), second.RunID); run.Info.PreviousRunID != first.RunID {
		t.Errorf("the run before is %q, want %q", run.Info.PreviousRunID, first.RunID)
	}
}

// A runtime that takes over has a separate record, which names the one before.
func TestFallbackContinuesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Fallback = []string{"other"}
	records := &runs.Records{Root: filepath.Join(t.TempDir(), "runs"), Required: true}
	b.Runner.Recorder = records
	o := b.start(backend.Attempt{Prompt: prompt("quota"), Labels: backend.RecordLabels("m", "t", "")}).finish(backend.Quota)
	run, err := records.Find(t.Context(), o.RunID)
	if err != nil || len(o.Attempts) != 1 || run.Info.Agent != "other" || run.Info.PreviousRunID != o.Attempts[0].RunID || o.Attempts[0].RunID == "" {
		t.Errorf("%+v, %v; attempts %+v", run.Info, err, o.Attempts)
	}
}

func TestRecordLabels(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"bus-dev", "busdk#81.1", "busdk#81-1", "BUSDK#81.1", "acme/payroll#123.1", "../..", "", "-", "ä", strings.Repeat("long#", 100), strings.Repeat("long#", 101), "a--b"} {
		labels := backend.RecordLabels(name, name, "")
		if err := runs.CheckProject(labels.Project); err != nil {
			t.Error(err)
		}
		if err := runs.CheckTask(labels.Task); err != nil {
			t.Error(err)
		}
		if other, ok := seen[labels.Task]; ok {
			t.Errorf("%q and %q have the record %q", name, other, labels.Task)
		}
		seen[labels.Task] = name
	}
	if got := backend.RecordLabels("bus-dev", "123", "").Project; got != "bus-dev" {
		t.Errorf("a valid name became %q", got)
	}
}
