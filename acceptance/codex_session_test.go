//go:build acceptance

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

func TestCodexResumesASession(t *testing.T) {
	t.Parallel()
	turn := func(text string) modeltest.Reply {
		return modeltest.Reply{modeltest.Text{text}, modeltest.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7}}
	}
	w := newWorld(t, modeltest.Replies(turn("noted"), turn("unrelated"), turn("it was 42"), turn("still 42")), layered())
	first, o := w.run("remember 42")
	w.succeeds("noted", first, o)
	if first.SessionID == "" {
		t.Fatalf("no session ID: %v", o)
	}
	other, o := w.run("something else")
	w.succeeds("unrelated", other, o)

	resumed, o := w.run("what was it?", "--resume", first.SessionID)
	w.succeeds("it was 42", resumed, o)
	if resumed.SessionID != first.SessionID {
		t.Errorf("resumed %s, asked for %s", resumed.SessionID, first.SessionID)
	}
	continued, o := w.run("and now?", "--continue")
	w.succeeds("still 42", continued, o)
	if continued.SessionID != first.SessionID {
		t.Errorf("continued %s, the latest is %s", continued.SessionID, first.SessionID)
	}

	request := w.asked(4)[3]
	var talk []string
	for _, m := range request.Messages() {
		text := strings.Join(m.Texts, "")
		if m.Role == "assistant" || m.Role == "user" && !strings.Contains(text, "<") {
			talk = append(talk, m.Role+": "+text)
		}
	}
	want := []string{
		"user: remember 42", "assistant: noted",
		"user: what was it?", "assistant: it was 42",
		"user: and now?",
	}
	if diff := cmp.Diff(want, talk); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	checkLayers(t, request, rootMark)

	wantUsage := &agent.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7}
	for i, r := range []report{first, other, resumed} {
		if diff := cmp.Diff(wantUsage, r.Usage); diff != "" {
			t.Errorf("usage of run %d (-want +got):\n%s", i, diff)
		}
	}
}

// A session says nothing about what the next run may do: each run's own access
// and model hold.
func TestCodexResumedRunHasItsOwnAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r *modeltest.Request) modeltest.Reply {
		if lastPrompt(r) == "now write" && len(r.ToolResults()) == 0 {
			return modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"echo x > made"}`}}
		}
		return answer("ok")
	}, map[string]string{".gitignore": "made\n"})
	first, o := w.run("hello", "--access", "full", "--model-reasoning-effort", "high")
	w.succeeds("ok", first, o)
	r, o := w.run("now write", "--resume", first.SessionID, "--access", "read", "--model-reasoning-effort", "low")
	w.succeeds("ok", r, o)
	requests := w.asked(3)
	if _, err := os.Stat(filepath.Join(w.repo, "made")); err == nil {
		t.Error("the resumed run wrote with the access of the first one")
	}
	if out := requests[2].ToolResults(); len(out) != 1 || !strings.Contains(out[0].Output, "Read-only file system") {
		t.Errorf("tool results %q", out)
	}
	if got := requests[1].Effort(); got != "low" {
		t.Errorf("effort %q", got)
	}
}

func TestCodexRefusesAnUnknownSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Replies(), nil)
	for _, id := range []string{"01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0", "no-such-session", "../../x"} {
		o := w.bus("hello", append([]string{"run", "--agent", "codex", "--resume", id, "--prompt", "-"}, w.fake()...)...)
		if o.code != 2 || !strings.Contains(o.stderr, id) {
			t.Errorf("resume %s: %v", id, o)
		}
	}
	if o := w.bus("hello", append([]string{"run", "--agent", "codex", "--continue", "--prompt", "-"}, w.fake()...)...); o.code != 2 {
		t.Errorf("continue without a session: %v", o)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// A login made with Codex itself still counts, though each run has a home of
// its own; a key in the environment beats it.
func TestCodexLoginStillCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Always(answer("ok")), nil)
	writeFiles(t, w.home, map[string]string{
		".codex/auth.json":   `{"OPENAI_API_KEY":"sk-of-the-login"}`,
		".codex/config.toml": "model = \"of-the-user\"\n",
		".codex/AGENTS.md":   "rules of the user\n",
	})
	builtIn := []string{"--", "-c", `openai_base_url="` + w.model.OpenAIURL() + `"`}
	r, o := w.runWith("hello", builtIn)
	w.succeeds("ok", r, o)
	w.env = []string{"CODEX_API_KEY=sk-of-the-environment"}
	r, o = w.runWith("hello", builtIn)
	w.succeeds("ok", r, o)

	elsewhere := filepath.Join(w.home, "elsewhere")
	writeFiles(t, elsewhere, map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-elsewhere"}`})
	w.env = []string{"CODEX_HOME=" + elsewhere}
	r, o = w.runWith("hello", builtIn)
	w.succeeds("ok", r, o)

	for i, key := range []string{"sk-of-the-login", "sk-of-the-environment", "sk-elsewhere"} {
		if got := w.asked(3)[i].Header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("run %d sent %q, want %s", i, got, key)
		}
	}
	for _, request := range w.asked(3) {
		if request.Model() != "gpt-5.5" {
			t.Errorf("asked for %s", request.Model())
		}
	}
}

// What the caller names wins over everything, and is used as it is.
func TestCodexHomeOfTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Replies(answer("ok")), layered())
	own := t.TempDir()
	writeFiles(t, own, map[string]string{"config.toml": "model_verbosity = \"high\"\n"})
	r, o := w.run("hello", "--env", "CODEX_HOME="+own)
	w.succeeds("ok", r, o)
	request := w.asked(1)[0]
	checkLayers(t, request, rootMark)
	if request.Verbosity() != "high" {
		t.Errorf("verbosity %q: the caller's settings are lost", request.Verbosity())
	}
	if _, err := os.Stat(filepath.Join(own, "sessions")); err != nil {
		t.Errorf("the session is not in the caller's home: %v", err)
	}
}
