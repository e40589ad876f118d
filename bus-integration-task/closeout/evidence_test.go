package closeout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
)

func TestEvidenceOfWork(t *testing.T) {
	t.Parallel()
	report, work := honest()
	report.RequiredChecks = append(report.RequiredChecks,
		closeout.Check{Command: "scripts/smoke"}, closeout.Check{Command: "make e2e", Result: closeout.CheckSkipped})
	work.Commands = []closeout.Command{
		fell("go test ./..."), ran("ls"), ran("go test ./..."), ran("scripts/smoke"), ran("make lint | cat"), fell("make vet"),
	}
	var e closeout.Evidence
	e.SetWork(report, *work, closeout.Verdict{Outcome: closeout.Blocked, Reason: "why"})
	want := closeout.Evidence{
		ChangedFiles: []string{"PLAN.md", "a.go"}, ChangedFilesTotal: 2, DiffBytes: 100,
		Validation: []closeout.Check{
			{Command: "go test ./...", Result: closeout.CheckPassed},
			{Command: "scripts/smoke", Result: closeout.CheckPassed},
			{Command: "make vet", Result: closeout.CheckFailed},
			{Command: "make e2e", Result: closeout.CheckSkipped},
		},
		Outcome: closeout.Blocked, Reason: "why",
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}

	report, work = readOnly()
	e = closeout.Evidence{}
	e.SetWork(report, *work, closeout.Judge(report, *work))
	if e.NoChangeReason != "read-only smoke" || e.Outcome != closeout.Done {
		t.Errorf("got %+v", e)
	}
	e.SetWork(nil, *work, closeout.Judge(nil, *work))
	if e.NoChangeReason != "produced no worktree changes" {
		t.Errorf("got %+v", e)
	}
}

func TestJSONIsBoundedAndMasked(t *testing.T) {
	t.Parallel()
	secret := "sk-very-secret"
	environ := []string{"OPENAI_API_KEY=" + secret}
	long := strings.Repeat("\x00", 4090) + secret
	files := make([]string, 150)
	for i := range files {
		files[i] = fmt.Sprint(i, long)
	}
	evidence := closeout.Evidence{
		WorkRef: secret, ChangedFiles: files, ChangedFilesTotal: len(files), NoteIDs: files, Reason: "a\n" + long,
		Validation: []closeout.Check{{Command: "curl -H " + secret}}, Labels: task.Labels{ObservedModel: secret},
	}
	report := closeout.Closeout{
		Summary: long, ChangedFiles: files, RequiredChecks: []closeout.Check{{Command: secret}},
		RemainingBlockers: closeout.Texts(files), BusNotes: closeout.BusNotes{IDs: files, Query: secret},
	}
	for name, encode := range map[string]func([]string) (json.RawMessage, error){"evidence": evidence.JSON, "closeout": report.JSON} {
		text, err := encode(environ)
		switch {
		case err != nil:
			t.Error(name, err)
		case len(text) > closeout.MaxJSON || !json.Valid(text):
			t.Errorf("%s: %d bytes, valid: %t", name, len(text), json.Valid(text))
		case strings.Contains(string(text), "sk-very") || !strings.Contains(string(text), "***"):
			t.Errorf("%s is not masked: %.300s", name, text)
		}
	}
	if !strings.HasSuffix(files[149], secret) || report.Summary != long {
		t.Error("the values themselves were changed")
	}
}

func ExampleEvidence() {
	e := closeout.Evidence{
		WorkRef: "busdk#81.1", AttemptID: "a-1", WorkerID: "w-1", Commit: "4f2c…",
		Started: time.Date(2026, 6, 5, 0, 49, 5, 0, time.UTC), Ended: time.Date(2026, 6, 5, 0, 50, 0, 0, time.UTC),
		Outcome: closeout.Done, Reason: "completed with the key sk-0123456789",
	}
	text, err := e.JSON([]string{"OPENAI_API_KEY=sk-0123456789"})
	fmt.Println(string(text), err)
	// Output: {"work_ref":"busdk#81.1","attempt_id":"a-1","worker_id":"w-1","commit":"4f2c…","changed_files_total":0,"diff_bytes":0,"started":"2026-06-05T00:49:05Z","ended":"2026-06-05T00:50:00Z","outcome":"done","reason":"completed with the key ***"} <nil>
}
