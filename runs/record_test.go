package runs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func TestRecordOfASuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{AgentVersion: true})
	result, dir, err := b.run(t, b.request("stderr careful", "say session:s1", "say text:first", "say tool:look", "say again:look here", "say text:the answer", "say usage:", "say ok:"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cost := 0.25
	want := runs.Usage{Input: 3, Output: 4, CostUSD: &cost}
	switch {
	case info.RunID != result.RunID || info.Version != 1 || info.ProjectID != "my-project" || info.ProcessOwnership != "managed",
		info.Agent != "fake" || info.Model != "m-1" || info.SessionID != "s1" || info.Access != "write" || info.ToolCalls != 1,
		info.Status != runs.StatusCompleted || info.ExitCode != 0 || info.ErrorSummary != "" || info.Error != "",
		info.AgentVersion != "fake 1.2.3",
		info.PID <= 0 || info.PGID != info.PID || info.Process == "" || info.Owner == "" || info.CWD != b.dir,
		!info.EndTime.After(info.StartTime) || info.StartTime.Location().String() != "UTC",
		info.Usage == nil || info.Usage.Input != want.Input || info.Usage.Output != want.Output || *info.Usage.CostUSD != cost:
		t.Errorf("run-info.yaml is\n%+v", info)
	}
	if got := "fake 'it'\\''s' -p < " + shellPath(info.PromptPath); info.CommandLine != got {
		t.Errorf("command line %q, want %q", info.CommandLine, got)
	}
	for name, want := range map[string]string{
		"prompt.md":        "do it",
		"agent-stdout.txt": "session:s1\ntext:first\ntool:look\nagain:look here\ntext:the answer\nusage:\nok:\n",
		"agent-stderr.txt": "careful\n",
		"output.md":        "the answer",
		"../../TASK.md":    "do it\n",
	} {
		if got := read(t, dir, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if regexp.MustCompile(`^[0-9]{8}-[0-9]{10}-[0-9]+-[0-9]+$`).FindString(result.RunID) == "" || runs.CheckRun(result.RunID) != nil {
		t.Errorf("run ID %q", result.RunID)
	}
	if runs.CheckTask(info.TaskID) != nil {
		t.Errorf("task %q", info.TaskID)
	}
	lines := strings.Split(strings.TrimSuffix(read(t, dir, "events.ndjson"), "\n"), "\n")
	var kinds []string
	for _, line := range lines {
		kinds = append(kinds, regexp.MustCompile(`^\{"time":"2[^"]+Z","kind":"([a-z_]+)"`).FindStringSubmatch(line)[1])
	}
	if want := []string{"message", "session_started", "text", "tool_call", "tool_call", "text", "usage", "result"}; !slices.Equal(kinds, want) {
		t.Errorf("events are %q, want %q", kinds, want)
	}
	expectPrivate(t, b.root)
	messages, err := runs.ReadMessages(filepath.Join(dir, "..", "..", "TASK-MESSAGE-BUS.md"))
	if err != nil || len(messages) != 2 || messages[0].Type != runs.MessageStart || messages[1].Type != runs.MessageStop ||
		messages[0].Run != result.RunID || !strings.HasPrefix(messages[1].Body, "run stopped with code 0\nrun_dir: "+dir) {
		t.Errorf("messages are %+v, %v", messages, err)
	}
}

// expectPrivate checks that only the owner can read the files, and that no temporary
// file remains.
func expectPrivate(t *testing.T, root string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			files++
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if name := d.Name(); strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".lock") {
			t.Errorf("%s is left behind", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestRecordOfAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script            []string
		code              int
		kind, summary     string
		signal, wantError string
	}{
		"exit 1":      {script: []string{"say text:half", "exit 1"}, code: 1, kind: "agent", summary: "agent reported failure"},
		"exit 2":      {script: []string{"exit 2"}, code: 2, kind: "agent", summary: "agent usage error"},
		"exit 7":      {script: []string{"exit 7"}, code: 7, kind: "agent", summary: "agent exited with code 7"},
		"killed":      {script: []string{"die"}, code: 137, kind: "agent", summary: "agent killed (OOM or signal)", signal: "SIGKILL"},
		"quota":       {script: []string{"say quota:used up"}, code: 0, kind: "quota", summary: "agent reported failure", wantError: "used up"},
		"no result":   {script: []string{"say text:half"}, code: 0, kind: "agent", summary: "agent reported failure"},
		"its secrets": {script: []string{"stderr $FAKE_API_KEY", "say quota:$FAKE_API_KEY"}, code: 0, kind: "quota", summary: "agent reported failure", wantError: "***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &runs.Records{})
			_, dir, err := b.run(t, b.request(append([]string{"stderr on the way"}, c.script...)...))
			if err == nil {
				t.Fatal("no error")
			}
			info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
			if err != nil || info.Status != runs.StatusFailed || info.ExitCode != c.code || info.ErrorKind != c.kind ||
				info.ErrorSummary != c.summary || info.Signal != c.signal || !strings.Contains(info.Error, c.wantError) {
				t.Errorf("run-info.yaml is\n%+v, %v", info, err)
			}
			messages, err := runs.ReadMessages(filepath.Join(dir, "..", "..", "TASK-MESSAGE-BUS.md"))
			if err != nil || len(messages) != 2 || messages[1].Type != runs.MessageCrash || !strings.Contains(messages[1].Body, "## stderr (last 50 lines)\non the way") {
				t.Errorf("messages are %+v, %v", messages, err)
			}
		})
	}
}

// An agent that cannot be started leaves a record of why.
func TestRecordOfAnAgentThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change     func(b *bench, path string) error
		kind, want string
	}{
		"not installed": {func(_ *bench, path string) error { return os.Remove(path) }, "not_installed", "https://example.com/fake"},
		"refused": {func(b *bench, path string) error {
			b.Environ[0] = "PATH=."
			return os.Rename(path, filepath.Join(b.dir, "fake"))
		}, "not_installed", "https://example.com/fake"},
		"unstartable": {func(_ *bench, path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("#!/nonexistent\n"), 0o700))
		}, "agent", "cannot be started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &runs.Records{AgentVersion: true})
			dir, _ := agent.LookupEnv(b.Environ, "PATH")
			if err := c.change(b, filepath.Join(dir, "fake")); err != nil {
				t.Fatal(err)
			}
			_, dir, err := b.run(t, b.request("say ok:"))
			if err == nil {
				t.Fatal("no error")
			}
			info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
			if err != nil || info.Status != runs.StatusFailed || info.Agent != "fake" || info.ExitCode != -1 || info.ErrorKind != c.kind ||
				info.ErrorSummary != "agent did not start" || !strings.Contains(info.Error, c.want) {
				t.Errorf("run-info.yaml is\n%+v, %v", info, err)
			}
			if got := read(t, dir, "prompt.md"); got != "do it" {
				t.Errorf("prompt.md is %q", got)
			}
		})
	}
	b := newBench(t, &runs.Records{})
	req := b.request("say ok:")
	req.MaxTurns = -1
	if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
	if _, err := os.Lstat(b.root); err == nil {
		t.Error("a wrong request is recorded")
	}
}

func TestOutputPrecedence(t *testing.T) {
	t.Parallel()
	for want, script := range map[string][]string{
		"my summary":    {"say text:the answer", "output my summary", "say ok:"},
		"the answer":    {"say text:the answer", "say ok:"},
		"ok:\nunread\n": {"say ok:", "say unread"},
	} {
		b := newBench(t, &runs.Records{})
		_, dir, _ := b.run(t, b.request(script...))
		if got := read(t, dir, "output.md"); got != want {
			t.Errorf("output.md is %q, want %q", got, want)
		}
	}
}

func TestAgentEnvironmentNamesItsRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	req := b.request("environ", "say ok:")
	req.Labels = agent.Labels{Project: "p", Task: "task-20260101-000000-mine", Parent: "20260101-000000000-7"}
	result, dir, err := b.run(t, req)
	if err != nil {
		t.Fatal(err)
	}
	task := filepath.Join(b.root, "p", "task-20260101-000000-mine")
	said := strings.Split(read(t, dir, "agent-stdout.txt"), "\n")
	for _, want := range []string{
		"JRUN_PROJECT_ID=p", "JRUN_TASK_ID=task-20260101-000000-mine", "JRUN_ID=" + result.RunID, "JRUN_PARENT_ID=20260101-000000000-7",
		"JRUN_RUNS_DIR=" + filepath.Join(task, "runs"), "JRUN_MESSAGE_BUS=" + filepath.Join(task, "TASK-MESSAGE-BUS.md"),
		"JRUN_TASK_FOLDER=" + task, "JRUN_RUN_FOLDER=" + dir, "XAI_API_KEY=***",
	} {
		if !slices.Contains(said, "env:"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, line := range said {
		if name, _, _ := strings.Cut(strings.TrimPrefix(line, "env:"), "="); slices.Contains([]string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "NESTED"}, name) {
			t.Errorf("%s exists", name)
		}
	}
	if root, place, ok := runs.Outer(strings.Split(strings.ReplaceAll(strings.Join(said, "\n"), "env:", ""), "\n")); !ok || root != b.root ||
		place != (agent.Labels{Project: "p", Task: "task-20260101-000000-mine", Parent: result.RunID}) {
		t.Errorf("outer run is %q %+v %t", root, place, ok)
	}
}

func TestRuntimeWithoutTokenVariablesKeepsAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	req := b.request("environ", "say ok:")
	req.Runtime = "other"
	_, dir, err := b.run(t, req)
	said := read(t, dir, "agent-stdout.txt")
	if err != nil || !strings.Contains(said, "OPENAI_API_KEY=") || strings.Contains(said, "NESTED=") {
		t.Errorf("OPENAI_API_KEY was removed, or NESTED was not; %v", err)
	}
}

func TestPreambleIsPartOfThePrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{Preamble: true})
	_, dir, err := b.run(t, b.request("prompt", "say ok:"))
	if err != nil {
		t.Fatal(err)
	}
	prompt := read(t, dir, "prompt.md")
	if !strings.HasPrefix(prompt, "JRUN_TASK_FOLDER="+filepath.Dir(filepath.Dir(dir))+"\n") || !strings.HasSuffix(prompt, "\n---\n\ndo it") ||
		!strings.Contains(prompt, "\nWrite output.md to "+filepath.Join(dir, "output.md")+"\n") {
		t.Errorf("prompt.md is\n%s", prompt)
	}
	if said := read(t, dir, "agent-stdout.txt"); !strings.Contains(said, `---\n\ndo it`) || !strings.Contains(said, "Write output.md to") {
		t.Errorf("the agent got\n%s", said)
	}
}

func TestInvalidLabelsAreRefused(t *testing.T) {
	t.Parallel()
	for _, place := range []agent.Labels{
		{Project: "../up"}, {Project: "Mine"}, {Project: "a/b"}, {Task: "Mine"}, {Task: "task-20260101-000000-../x"}, {Parent: "-x"}, {Previous: "../1"},
	} {
		b := newBench(t, &runs.Records{})
		req := b.request("say ok:")
		req.Labels = place
		if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%+v: %v", place, err)
		}
		if _, err := os.Lstat(b.root); err == nil {
			t.Errorf("%+v: something was written", place)
		}
	}
	b := newBench(t, &runs.Records{})
	req := b.request("say ok:")
	req.Env = append(req.Env, "JRUN_ID=another")
	if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("JRUN_ID: %v", err)
	}
}

func TestRecordIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	rt, _ := b.Registry.Lookup("fake")
	rt.Run.Options.MCPServers = true
	if err := b.Registry.Replace(rt); err != nil {
		t.Fatal(err)
	}
	req := b.request("stderr $FAKE_API_KEY mcp-pass", "say text:$FAKE_API_KEY, mcp-pass and $XAI_API_KEY", `say text:{"x":"sk-\"very\\secret"}`, "say change:$FAKE_API_KEY", "environ", "say quota:$FAKE_API_KEY")
	req.Prompt = "use " + secret
	req.MCPServers = []agent.MCPServer{{Name: "a", URL: "https://example.com/", Headers: map[string]string{"Authorization": "Bearer mcp-pass"}}}
	_, dir, _ := b.run(t, req)
	if got, want := read(t, dir, "events.ndjson"), `"diff":"@@ -0,0 +1 @@\n+***\n"`; !strings.Contains(got, want) {
		t.Errorf("events.ndjson has no %s:\n%s", want, got)
	}
	files := 0
	_ = filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text := read(t, path)
		for _, s := range []string{secret, `very\\secret`, "sk-xai-secret", "mcp-pass"} {
			if strings.Contains(text, s) {
				t.Errorf("%s has %s:\n%s", path, s, text)
			}
		}
		return nil
	})
	if files != 8 {
		t.Errorf("%d files", files)
	}
}

func TestConcurrentRunsHaveSeparateRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	b.Warn = func(string) {}
	const n = 20
	ids := make(chan string, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			req := b.request("say text:x", "say ok:")
			req.Labels = agent.Labels{Project: "p", Task: "task-20260101-000000-mine"}
			result, err := b.Run(t.Context(), req, agent.Output{})
			if err != nil {
				t.Error(err)
			}
			ids <- result.RunID
		})
	}
	all.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	messages, err := runs.ReadMessages(filepath.Join(b.root, "p", "task-20260101-000000-mine", "TASK-MESSAGE-BUS.md"))
	if len(seen) != n || len(messages) != 2*n || err != nil {
		t.Errorf("%d IDs, %d messages, %v", len(seen), len(messages), err)
	}
}

// A record stays readable whatever an agent calls its session.
func TestRecordOfALongSessionID(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	id := strings.Repeat("\U000e0001", 30_000) // which YAML escapes
	_, dir, err := b.run(t, b.request("say session:"+id, "say ok:"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
	if err != nil || len(info.SessionID) > 2<<10 || !strings.HasPrefix(id, strings.TrimSuffix(info.SessionID, "…")) {
		t.Errorf("%.100q, %v", info.SessionID, err)
	}
}

// shellPath returns the path of a test's folder for a shell: TMPDIR can have a space.
func shellPath(path string) string {
	if strings.Contains(path, " ") {
		return "'" + path + "'"
	}
	return path
}
