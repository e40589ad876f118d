//go:build acceptance

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// A resumed run has its own access and model, not those of the session.
func TestCodexResumedRunHasItsOwnAccess(t *testing.T) {
	t.Parallel()
	w := newCodex(t, func(r *modeltest.Request) modeltest.Reply {
		if lastPrompt(r) == "now write" && len(r.ToolResults()) == 0 {
			return modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"echo x > made"}`}}
		}
		return answer("ok")
	}, map[string]string{".gitignore": "made\n"})
	first, o := w.run("hello", "--access", "full", "--model-reasoning-effort", "high")
	w.wantAnswer("ok", first, o)
	r, o := w.run("now write", "--resume", first.SessionID, "--access", "read", "--model-reasoning-effort", "low")
	w.wantAnswer("ok", r, o)
	requests := w.wantRequests(3)
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

func TestCodexRefusesUnknownSession(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Replies(), nil)
	for _, id := range []string{"01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0", "no-such-session", "../../x"} {
		o := w.exec("hello", append([]string{"run", "--agent", "codex", "--resume", id, "--prompt", "-"}, w.codexArgs()...)...)
		if o.code != 2 || !strings.Contains(o.stderr, id) {
			t.Errorf("resume %s: %v", id, o)
		}
	}
	if o := w.exec("hello", append([]string{"run", "--agent", "codex", "--continue", "--prompt", "-"}, w.codexArgs()...)...); o.code != 2 {
		t.Errorf("continue without a session: %v", o)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
}

// A login made with Codex is used, although each run has a separate home. A key in the
// environment has precedence.
func TestCodexLogin(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Always(answer("ok")), nil)
	writeFiles(t, w.home, map[string]string{
		".codex/auth.json":   `{"OPENAI_API_KEY":"sk-of-the-login"}`,
		".codex/config.toml": "model = \"of-the-user\"\n",
		".codex/AGENTS.md":   "rules of the user\n",
	})
	builtIn := []string{"--", "-c", `openai_base_url="` + w.model.OpenAIURL() + `"`}
	r, o := w.runWith("hello", builtIn)
	w.wantAnswer("ok", r, o)
	w.env = []string{"CODEX_API_KEY=sk-of-the-environment"}
	r, o = w.runWith("hello", builtIn)
	w.wantAnswer("ok", r, o)

	elsewhere := filepath.Join(w.home, "elsewhere")
	writeFiles(t, elsewhere, map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-elsewhere"}`})
	w.env = []string{"CODEX_HOME=" + elsewhere}
	r, o = w.runWith("hello", builtIn)
	w.wantAnswer("ok", r, o)

	for i, key := range []string{"sk-of-the-login", "sk-of-the-environment", "sk-elsewhere"} {
		if got := w.wantRequests(3)[i].Header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("run %d sent %q, want %s", i, got, key)
		}
	}
	for _, request := range w.wantRequests(3) {
		if request.Model() != "gpt-5.5" {
			t.Errorf("unexpected model %s", request.Model())
		}
	}
}

// Runs leave the user's databases alone. Codex would store paths of session files in them,
// and not find a session in a private home with another name.
func TestCodexDatabases(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Always(answer("ok")), nil)
	named, inherited := t.TempDir(), t.TempDir()
	writeFiles(t, w.home, map[string]string{".codex/config.toml": fmt.Sprintf("sqlite_home = %q\n", named)})
	w.env = []string{"CODEX_SQLITE_HOME=" + inherited}
	r, o := w.run("hello", "--user-config", "on")
	w.wantAnswer("ok", r, o)
	r, o = w.run("hello", "--continue")
	w.wantAnswer("ok", r, o)
	for _, user := range []string{named, inherited} {
		if entries, err := os.ReadDir(user); err != nil || len(entries) > 0 {
			t.Errorf("the user's databases: %v, %v", entries, err)
		}
	}
}

// The caller's CODEX_HOME has precedence and is not changed.
func TestCodexCallerHome(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Replies(answer("ok")), layered())
	own := t.TempDir()
	writeFiles(t, own, map[string]string{"config.toml": "model_verbosity = \"high\"\n"})
	r, o := w.run("hello", "--env", "CODEX_HOME="+own)
	w.wantAnswer("ok", r, o)
	request := w.wantRequests(1)[0]
	checkMarks(t, request, rootMark)
	if request.Verbosity() != "high" {
		t.Errorf("verbosity %q: the caller's settings were not applied", request.Verbosity())
	}
	if _, err := os.Stat(filepath.Join(own, "sessions")); err != nil {
		t.Errorf("the session is not in the caller's home: %v", err)
	}
}
