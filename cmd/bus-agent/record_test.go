package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
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
	out, got := output(s.command(args...))
	if got != code {
		s.t.Fatalf("%q: exit code %d, want %d\n%s", args, got, code, out)
	}
	return out
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

func TestRunContinuesWithoutARecord(t *testing.T) {
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
	s := newSandbox(t, "codex", secretSession+secretAnswer+"hang\n")
	c := s.command("run", "--text", "x", "--record")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the record of an answer", func() (said string, ok bool) {
		list := s.records()
		if len(list) == 0 || list[0].Process == "" {
			return "", false
		}
		text, err := os.ReadFile(filepath.Join(list[0].Dir, "agent-stdout.txt"))
		said = string(text)
		return said, err == nil && strings.HasSuffix(said, "\n") && strings.Contains(said, "hello")
	})
	if list := s.records(); len(list) != 1 || list[0].Status != runs.StatusRunning {
		t.Errorf("records are %+v", list)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	list := s.records()
	if len(list) != 1 || list[0].Status != runs.StatusCrashed {
		t.Fatalf("records are %+v", list)
	}
	// What the agent said reached the disk before the events of it.
	if err := os.Truncate(filepath.Join(list[0].Dir, "events.ndjson"), 0); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"events", "tail"} {
		if out := s.exits(0, "runs", command, "latest"); !strings.Contains(out, "hello") {
			t.Errorf("runs %s prints\n%s", command, out)
		}
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
	want := []string{"message: first", "text: you said first", "message: second", "text: you said second"}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("events %q, %v, want %q", said, err, want)
	}
	for name, want := range map[string]string{"prompt.md": "first", "../../TASK.md": "first\n", "output.md": "you said second"} {
		if text, err := os.ReadFile(filepath.Join(list[0].Dir, name)); string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	s.exits(0, "session", "resume", "one", "third")
	s.exits(0, "session", "stop", "one")
	list = s.records()
	if len(list) != 2 || list[0].PreviousRunID != list[1].RunID || list[0].TaskID != list[1].TaskID {
		t.Errorf("after the resume, the records are\n%+v", list)
	}
}

// No file of a record has a secret, whichever side sent it.
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

// Each command reads the record of an older writer, and gives one line about files that
// are empty, missing or damaged.
func TestRecordsOfOtherWritersAreShown(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "")
	root := s.path("other")
	put := func(id, info string, files map[string]string) {
		t.Helper()
		dir := filepath.Join(root, "p", "task-001", "runs", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files["run-info.yaml"] = strings.ReplaceAll(info, "ID", id)
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const info = "run_id: ID\nproject_id: p\ntask_id: task-001\nagent: codex\nstart_time: 2026-02-05T15:04:05Z\nend_time: 2026-02-05T15:05:05Z\n"
	put("older", info+"status: success\n", map[string]string{"stdout": secretAnswer[len("out "):], "output.md": ""})
	put("plain", info+"status: completed\n", map[string]string{"stdout": secretAnswer[len("out "):]})
	put("silent", info+"status: completed\n", map[string]string{"stdout": "", "output.md": ""})
	put("late", info+"status: failed\nerror_summary: timed out\n", map[string]string{"agent-stdout.txt": ""})
	put("odd", info+"status: queued\n", map[string]string{})
	put("empty", "", map[string]string{})
	put("cut", info+"stat", map[string]string{})
	put("events", info+"status: completed\nevents_path: x\n", map[string]string{"events.ndjson": "{\n"})
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"show older":                 {0, "status"},
		"events --text older":        {0, "hello\n"},
		"output older":               {0, "hello\n"},
		"output plain":               {0, "hello\n"},
		"output --format json plain": {0, `"text": "hello"`},
		"output silent":              {1, "bus-agent: the run silent has no answer: output.md is empty\n"},
		"show late":                  {0, "error kind"},
		"events late":                {0, ""},
		"output late":                {1, "bus-agent: the run late has no answer: it is failed\n"},
		"show odd":                   {0, `unknown (recorded as "queued")`},
		"events odd":                 {1, "bus-agent: cannot show the run odd: the record has neither events nor output\n"},
		"show empty":                 {1, "bus-agent: " + root + "/p/task-001/runs/empty/run-info.yaml: empty\n"},
		"show cut":                   {1, "bus-agent: " + root + "/p/task-001/runs/cut/run-info.yaml: not a record of a run"},
		"events events":              {1, "bus-agent: not all events of the run events were shown: lines are damaged: 1 of 1, line 1 first\n"},
		"events --text cut":          {1, "bus-agent: " + root + "/p/task-001/runs/cut/run-info.yaml: not a record of a run"},
	} {
		out := s.exits(want.code, append([]string{"runs"}, append(strings.Fields(args), "--runs-root", root)...)...)
		lines := strings.Count(out, "\n")
		if !strings.Contains(out, want.text) || want.code != 0 && lines != 1 {
			t.Errorf("runs %s prints %d lines:\n%s\nwant %s", args, lines, out, want.text)
		}
	}
	if out := s.exits(0, "runs", "list", "--runs-root", root); strings.Count(out, "not listed: ") != 2 || !strings.Contains(out, "completed") {
		t.Errorf("the list is\n%s", out)
	}
	if out := s.exits(0, "runs", "report", "--runs-root", root); strings.Contains(out, "kind not recorded") {
		t.Error("the report says that a kind is not recorded")
	}
}

func TestMessagesOfATask(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", secretSession+secretAnswer+secretDone)
	s.exits(0, "run", "--text", "x", "--record", "--project", "p", "--task", "task-001")
	id := s.records()[0].RunID
	s.exits(0, "runs", "messages", "task-001", "--post", "the moon is\nfull\x1b[2J", "--type", "FACT")
	s.exits(0, "runs", "messages", "latest", "--post", "hello")
	s.exits(2, "runs", "messages", "latest", "--post", "nothing", "--format", "json")
	inside := s.command("runs", "messages", "--post", "from "+secretValue)
	task := s.path("home/.local/state/bus-agent/runs/p/task-001")
	inside.Env = append(inside.Env, "JRUN_PROJECT_ID=p", "JRUN_TASK_ID=task-001", "JRUN_ID="+id, "JRUN_RUNS_DIR="+task+"/runs", "X_API_KEY="+secretValue)
	if out, err := inside.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	for _, handle := range []string{"task-001", "p/task-001", "latest", id, "p/task-001/latest"} {
		out := s.exits(0, "runs", "messages", handle)
		for _, want := range []string{"  RUN_START  " + id + "\n  run started\n", "  RUN_STOP  " + id + "\n", "  FACT\n  the moon is\n  full\n", "  INFO\n  hello\n", "  INFO  " + id + "\n  from ***\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("runs messages %s lacks %q:\n%s", handle, want, out)
			}
		}
	}
	if out := s.exits(0, "runs", "messages", "task-001", "--type", "FACT", "--format", "json"); strings.Count(out, `"msg_id"`) != 1 || !strings.Contains(out, `"type": "FACT"`) {
		t.Errorf("as JSON:\n%s", out)
	}
	if messages, err := runs.ReadMessages(task + "/TASK-MESSAGE-BUS.md"); err != nil || len(messages) != 5 || messages[2].Project != "p" || messages[2].Task != "task-001" {
		t.Errorf("%+v, %v", messages, err)
	}
	for _, args := range [][]string{
		{}, {"none"}, {"task-001", "--post", " "}, {"task-001", "--post", ""}, {"task-001", "--post", "x", "--type", "RUN_STOP"}, {"task-001", "--post", "x", "--type", "a b"},
	} {
		if out := s.exits(2, append([]string{"runs", "messages"}, args...)...); !strings.HasPrefix(out, "bus-agent: ") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	if messages, _ := runs.ReadMessages(task + "/TASK-MESSAGE-BUS.md"); len(messages) != 5 {
		t.Error("a message that was refused is posted")
	}
}

const secretValue = "sk-0123456789"
