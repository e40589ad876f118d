//go:build acceptance

package backend_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"

	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// realCodex returns a bench with the Codex CLI that BUS_AGENT_CODEX names, in a clean
// home, and a scripted model.
func realCodex(t *testing.T, script modeltest.Script) (*bench, *modeltest.Server) {
	t.Helper()
	program := os.Getenv("BUS_AGENT_CODEX")
	if !filepath.IsAbs(program) {
		t.Fatal("BUS_AGENT_CODEX is not the absolute path of the Codex CLI; set it")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	model, err := modeltest.Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	r := new(registry.Registry)
	if err := r.Register(codex.Runtime()); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, workdir: t.TempDir(), home: t.TempDir()}
	s, err := backend.AppServer{
		Command: program,
		Args: []string{
			"app-server", "--listen", "stdio://", "-c", "model_provider=fake",
			"-c", fmt.Sprintf(`model_providers.fake={name="fake",base_url=%q,wire_api="responses",env_key="FAKE_API_KEY"}`, model.OpenAIURL()),
		},
	}.Session(runner.Runner{
		Registry: r, Warn: func(string) {}, Recorder: &runs.Records{Root: filepath.Join(t.TempDir(), "runs"), Required: true},
		Environ: []string{
			"PATH=" + filepath.Dir(node) + ":/usr/bin:/bin", "HOME=" + b.home, "TMPDIR=" + t.TempDir(), "LC_ALL=C.UTF-8",
			"BUS_API_TOKEN=of-the-worker",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Session = *s
	return b, model
}

// command returns a tool call of Codex; an escalated one needs an approval.
func command(text string, escalated bool) modeltest.ToolCall {
	arguments := map[string]any{"cmd": text}
	if escalated {
		arguments["sandbox_permissions"], arguments["justification"] = "require_escalated", "to try"
	}
	encoded, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // cannot happen for strings
	}
	return modeltest.ToolCall{Name: "exec_command", Arguments: string(encoded)}
}

// One task from its prompt over guidance and an approval to a closeout, and reopened in
// another process and another folder.
func TestCodexWorksOnATask(t *testing.T) {
	t.Parallel()
	guided := make(chan struct{})
	outside := filepath.Join(t.TempDir(), "approved")
	b, model := realCodex(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"I begin."}, modeltest.Wait(guided)},
		modeltest.Reply{command("sh -c 'exit 3'", false)},
		modeltest.Reply{command("touch "+outside, true)},
		modeltest.Reply{modeltest.Text{"All done."}, modeltest.Usage{Input: 10, Output: 2}},
		modeltest.Reply{modeltest.Text{"closed"}},
		modeltest.Reply{modeltest.Text{"Again."}},
	))
	a := backend.Attempt{
		Prompt: "Do the task.", StateDir: t.TempDir(), Model: "gpt-5.5", Effort: "low",
		Env: []string{"FAKE_API_KEY=sk-acceptance-secret"}, Labels: backend.RecordLabels("m", "busdk#81.1", ""),
	}
	r := b.start(a)
	if _, err := model.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if d, err := r.Say(t.Context(), "Leave out the slow ones."); d != backend.Steered || err != nil {
		t.Fatalf("%q, %v", d, err)
	}
	close(guided)
	want := fmt.Sprintf("approval: 1 command %q %q", "/bin/bash -lc 'touch "+outside+"'", "to try")
	r.await(want)
	if err := r.Answer(t.Context(), "1", session.Accept); err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if answer, err := r.Ask(t.Context(), "Close it."); answer != "closed" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	o := r.finish(backend.Completed)
	if o.Text != "All done." || o.RunID == "" || len(o.Commands) != 2 || *o.Commands[0].ExitCode != 3 || !o.Commands[1].Passed {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	r.wantReported("notice: Codex app-server turn started", "notice: live guidance delivered to Codex app-server session")
	requests := model.ModelRequests()
	if texts := strings.Join(requests[1].Texts("user"), "\n"); !strings.Contains(texts, "Leave out the slow ones.") {
		t.Errorf("the guidance is not in the turn: %s", texts)
	}
	if requests[0].Effort() != "low" || requests[0].Model() != "gpt-5.5" {
		t.Errorf("model %s, effort %s", requests[0].Model(), requests[0].Effort())
	}

	a.Prompt, a.ThreadID, a.Workdir = "Reopened.", o.ThreadID, t.TempDir()
	if again := b.start(a).finish(backend.Completed); again.Text != "Again." || again.ThreadID != o.ThreadID {
		t.Errorf("%+v", again)
	}
	requests = model.ModelRequests()
	if texts := strings.Join(requests[len(requests)-1].Texts("user"), "\n"); !strings.Contains(texts, "Do the task.") || !strings.Contains(texts, "Reopened.") {
		t.Errorf("the resumed thread has %s", texts)
	}
	for _, dir := range []string{b.workdir, a.Workdir} {
		if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
			t.Errorf("left in the worktree: %v, %v", left, err)
		}
	}
}

func TestCodexHasUsedUpItsQuota(t *testing.T) {
	t.Parallel()
	b, _ := realCodex(t, modeltest.Always(modeltest.Reply{modeltest.HTTPError{Status: 429, Message: "quota"}}))
	o := b.start(backend.Attempt{Prompt: "Do it.", StateDir: t.TempDir(), Env: []string{"FAKE_API_KEY=sk-acceptance-secret"}}).finish(backend.Quota)
	if o.Retryable {
		t.Errorf("%+v", o)
	}
}

func TestCodexIsStoppedInACommand(t *testing.T) {
	t.Parallel()
	marker := "started"
	b, _ := realCodex(t, modeltest.Always(modeltest.Reply{command("touch "+marker+"; sleep 1000", false)}))
	r := b.start(backend.Attempt{Prompt: "Do it.", StateDir: t.TempDir(), Sandbox: backend.DangerFullAccess, Env: []string{"FAKE_API_KEY=sk-acceptance-secret"}})
	testwait.Exists(t, filepath.Join(b.workdir, marker))
	if o := r.Stop(t.Context(), "canceled"); o.Result != backend.Canceled {
		t.Errorf("%+v", o)
	}
}
