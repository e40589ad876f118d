package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// records lists what a sandbox has recorded.
func (s *sandbox) records() []runs.Run {
	s.t.Helper()
	store := runs.Records{Root: s.path("home/.local/state/bus-agent/runs")}
	list, problems, err := store.List(s.t.Context(), runs.Filter{})
	if err != nil || len(problems) > 0 {
		s.t.Fatal(err, problems)
	}
	return list
}

// exits runs a command that must end with an exit code, and returns what it says.
func (s *sandbox) exits(code int, args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if got := exitCode(s.t, err); got != code {
		s.t.Fatalf("%q: exit code %d, want %d\n%s", args, got, code, out)
	}
	return string(out)
}

func TestRunIsRecordedWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", secretSession+secretAnswer+secretDone)
	s.exits(0, "run", "--text", "x")
	s.exits(2, "run", "--text", "x", "--task", "task-20260101-000000-mine")
	s.exits(2, "run", "--text", "x", "--preamble")
	s.exits(2, "run", "--text", "x", "--record=perhaps")
	s.exits(2, "run", "--text", "x", "--record", "--project", "../up")
	s.exits(2, "run", "--text", "x", "--record", "--runs-root", "")
	if list := s.records(); len(list) != 0 {
		t.Fatalf("recorded without being asked: %+v", list)
	}
	s.exits(0, "run", "--text", "x", "--record")
	s.exits(0, "run", "--text", "y", "--record", "--project", "p", "--task", "task-20260101-000000-mine", "--parent-run", "20260101-0000000000-1-1")
	s.exits(0, "set", "record", "on")
	if out := s.exits(0, "run", "--text", "z", "--format", "json"); !strings.Contains(out, `"run_id": "2`) {
		t.Errorf("the report names no run:\n%s", out)
	}
	s.exits(0, "run", "--text", "z", "--record=off")
	list := s.records()
	if len(list) != 3 {
		t.Fatalf("%d records", len(list))
	}
	first, second := list[2], list[1]
	if first.ProjectID != "work" || first.Status != runs.StatusCompleted || first.SessionID != "t" || runs.CheckTask(first.TaskID) != nil ||
		second.ProjectID != "p" || second.TaskID != "task-20260101-000000-mine" || second.ParentRunID != "20260101-0000000000-1-1" {
		t.Errorf("records are\n%+v\n%+v", first, second)
	}
}

func TestRunGoesOnWhereItCannotBeRecorded(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "args args\n"+secretSession+secretAnswer+secretDone)
	if err := os.WriteFile(s.path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := s.path("file/runs")
	out := s.exits(0, "run", "--text", "x", "--record", "--runs-root", root)
	if !strings.Contains(out, "bus-agent: the run is not recorded in "+root+": ") || !strings.Contains(out, "hello") {
		t.Errorf("it says\n%s", out)
	}
	if err := os.Remove(s.path("work/args")); err != nil {
		t.Fatal(err)
	}
	out = s.exits(1, "run", "--text", "x", "--record=required", "--runs-root", root)
	if !strings.Contains(out, "nothing was started") || !strings.Contains(out, "not a directory") {
		t.Errorf("it says\n%s", out)
	}
	if _, err := os.Lstat(s.path("work/args")); err == nil {
		t.Error("the agent was started")
	}
}

// A killed program leaves a record that is read as that of a crashed run.
func TestRecordOfAKilledProgram(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", secretSession+"hang\n")
	c := s.command("run", "--text", "x", "--record")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); len(s.records()) == 0 || s.records()[0].Process == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is recorded")
		}
	}
	if list := s.records(); len(list) != 1 || list[0].Status != runs.StatusRunning {
		t.Errorf("records are %+v", list)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if list := s.records(); len(list) != 1 || list[0].Status != runs.StatusCrashed {
		t.Errorf("records are %+v", list)
	}
}

func TestSessionIsRecorded(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", "converse\n")
	s.exits(0, "session", "start", "--agent", "claude", "--name", "one", "--record", "--project", "p", "first")
	s.exits(0, "session", "send", "one", "second")
	s.exits(0, "session", "stop", "one")
	list := s.records()
	if len(list) != 1 || !list[0].Session || list[0].Status != runs.StatusCompleted || list[0].ProjectID != "p" || list[0].SessionID == "" {
		t.Fatalf("records are %+v", list)
	}
	var said []string
	f, err := os.Open(filepath.Join(list[0].Dir, "events.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = runs.ReadEvents(f, func(e *runs.Event) error {
		if e.Kind == runs.KindMessage || e.Kind == agent.KindText {
			said = append(said, string(e.Kind)+": "+e.Text)
		}
		return nil
	})
	// An agent can be quicker than the word that it has got a message.
	slices.SortStableFunc(said, func(a, b string) int { return strings.Compare(a[:4], b[:4]) })
	want := []string{"message: first", "message: second", "text: you said first", "text: you said second"}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("events %q, %v, want %q", said, err, want)
	}
}

// Secrets are in no file of a record, whoever says them.
func TestRecordsHoldNoSecret(t *testing.T) {
	t.Parallel()
	all := append(secretsOf(nil), describedSecret)
	quoted := strings.Join(all, " ")
	s := newSandbox(t, "codex", "err the keys are "+quoted+"\n"+secretSession+
		`out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"using `+quoted+`"}}`+"\n"+
		`out {"type":"turn.failed","error":{"message":"refused: `+quoted+`"}}`+"\nexit 1\n")
	c := s.command("run", "--agent", "codex", "--text", "do it with "+quoted, "--record", "--env", "CALL_TOKEN="+callSecret, "--env", "MORE_KEY="+describedSecret)
	for name, value := range environSecrets {
		c.Env = append(c.Env, name+"="+value)
	}
	if out, err := c.CombinedOutput(); exitCode(t, err) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	files := 0
	err := filepath.WalkDir(s.path("home/.local/state/bus-agent"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, secret := range all {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s holds %s:\n%s", path, secret, text)
			}
		}
		return err
	})
	if err != nil || files != 8 {
		t.Errorf("%d files, %v", files, err)
	}
}
