package delegation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session/control"
)

func TestRecordsOfTheWorkdirAreRead(t *testing.T) {
	t.Parallel()
	s := settings(t)
	root := t.TempDir()
	s.RunsRoot, s.Record = root, &control.RecordSettings{Root: root, Required: true}
	outside := s
	outside.Workdir = t.TempDir()
	if err := os.Mkdir(filepath.Join(s.Workdir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	foreign, err := broker(t, outside).Run(t.Context(), delegation.Task{Prompt: "Secret."}, nil)
	if err != nil || foreign.RunID == "" {
		t.Fatalf("%+v, %v", foreign, err)
	}
	b := broker(t, s)
	answer, err := b.Run(t.Context(), delegation.Task{Prompt: "Hello.", Workdir: "sub"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	start(t, b, delegation.Task{Prompt: "Hi."}, false)
	list, err := b.Records(t.Context(), "", "", 0)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list, err = b.Records(t.Context(), runs.StatusCompleted, "mimic", 1); err != nil || len(list) != 1 || list[0].RunID != answer.RunID {
		t.Errorf("completed: %+v, %v", list, err)
	}
	for file, want := range map[string]string{"": "Hello.", runs.FilePrompt: "Hello."} {
		if r, err := b.Record(t.Context(), answer.RunID, file); err != nil || r.Text != want || r.Runtime != "mimic" || r.Status != runs.StatusCompleted {
			t.Errorf("%q: %+v, %v", file, r, err)
		}
	}
	s.Output = 3
	if r, err := broker(t, s).Record(t.Context(), answer.RunID, ""); err != nil || !r.Truncated || r.Text != "H\n[…]\n." {
		t.Errorf("a long answer: %+v, %v", r, err)
	}
	for _, c := range [][2]string{{foreign.RunID, ""}, {answer.RunID, "../run-info.yaml"}, {"bogus", ""}, {"2", ""}} {
		r, err := b.Record(t.Context(), c[0], c[1])
		if err == nil || r.Text != "" || c[0] != foreign.RunID && strings.Contains(err.Error(), foreign.RunID) || strings.Contains(err.Error(), root) {
			t.Errorf("%q: %+v, %v", c, r, err)
		}
	}
	s.RunsRoot = ""
	if _, err := broker(t, s).Records(t.Context(), "", "", 0); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("without a folder: %v", err)
	}
}
