//go:build acceptance

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/busdk/bus-agent/backends/all"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
)

// exhausted returns a script in which the quota of one provider is exhausted and the
// others answer.
func exhausted(provider string, before ...modeltest.Reply) modeltest.Script {
	asked := 0
	return func(r *modeltest.Request) modeltest.Reply {
		if r.Provider != provider {
			return answer("from " + r.Provider)
		}
		asked++
		if asked <= len(before) {
			return before[asked-1]
		}
		return modeltest.Reply{modeltest.HTTPError{Status: http.StatusTooManyRequests, Message: "no quota left"}}
	}
}

// fallbackReport is the output of --format json with --fallback.
type fallbackReport struct {
	report
	Attempts []struct {
		Runtime, Model, Kind, Error string
		DurationMS                  int64 `json:"duration_ms"`
	}
}

// newFallback returns a fixture in which Claude Code, Gemini CLI and Codex use the same
// scripted model. Codex is configured by a separate home, because arguments after --
// would be passed to one CLI only.
func newFallback(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newClaude(t, script, files)
	w.keptInHome = append(w.keptInHome, ".local") // cooldowns
	w.env = append(w.env, "GOOGLE_GEMINI_BASE_URL="+w.model.GeminiURL(), "GEMINI_API_KEY=sk-acceptance")
	writeFiles(t, w.home, map[string]string{
		".gemini/settings.json": geminiSettings,
	})
	return w
}

// runWithFallback runs agent with --fallback others.
func (w *fixture) runWithFallback(agent, others string, args ...string) (fallbackReport, outcome) {
	w.t.Helper()
	own := w.t.TempDir()
	writeFiles(w.t, own, map[string]string{"config.toml": fmt.Sprintf(
		"model = \"gpt-5.5\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"FAKE_API_KEY\"\n",
		w.model.OpenAIURL())})
	o := w.exec("what is new?", append([]string{
		"run", "--format", "json", "--prompt", "-", "--agent", agent, "--fallback", others, "--env", "CODEX_HOME=" + own,
	}, args...)...)
	var r fallbackReport
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		w.t.Fatalf("standard output is not a report: %v\n%v", err, o)
	}
	return r, o
}

// wantAnswerFrom fails the test unless the run succeeded with the answer of provider,
// after attempts with the given runtimes and failures.
func (w *fixture) wantAnswerFrom(provider string, r fallbackReport, o outcome, after ...string) {
	w.t.Helper()
	var tried []string
	for _, a := range r.Attempts {
		tried = append(tried, a.Runtime+" "+a.Kind)
	}
	if o.code != 0 || r.Kind != "" || r.Text != "from "+provider || !slices.Equal(tried, after) {
		w.t.Fatalf("want the answer of %s after %q, got %+v\n%v", provider, after, r, o)
	}
}

// providers counts the requests to each provider, and checks that each has the prompt.
func (w *fixture) providers() map[string]int {
	w.t.Helper()
	counts := map[string]int{}
	for _, r := range w.model.ModelRequests() {
		counts[r.Provider]++
		if last := lastPrompt(r); !strings.Contains(last, "what is new?") {
			w.t.Errorf("%s got the prompt %q", r.Provider, last)
		}
	}
	return counts
}

// Codex answers if the quota of Claude Code is exhausted. Claude Code is then in cooldown
// and not started until the cooldown is cleared.
func TestFallbackFromClaudeToCodex(t *testing.T) {
	t.Parallel()
	w := newFallback(t, exhausted("anthropic"), nil)
	r, o := w.runWithFallback("claude", "codex,gemini", "--model", "claude-opus-5-5")
	w.wantAnswerFrom("openai", r, o, "claude quota")
	if r.Runtime != "codex" || r.Attempts[0].Model != "claude-opus-5-5" || r.SessionID == "" {
		t.Errorf("reported %+v", r)
	}
	asked := w.providers()["anthropic"]
	if got := w.providers(); asked == 0 || got["openai"] != 1 || got["gemini"] != 0 {
		t.Errorf("requests %v", got)
	}
	if o := w.exec("", "doctor", "claude"); !strings.Contains(o.stdout, "claude           note: in cooldown until ") || !strings.Contains(o.stdout, "no quota left") {
		t.Errorf("doctor: %v", o)
	}
	r, o = w.runWithFallback("claude", "codex")
	w.wantAnswerFrom("openai", r, o, "claude quota")
	if got := w.providers(); got["anthropic"] != asked || got["openai"] != 2 {
		t.Errorf("requests %v", got)
	}
	w.exec("", "doctor", "--clear-cooldown", "claude")
	r, o = w.runWithFallback("claude", "codex")
	w.wantAnswerFrom("openai", r, o, "claude quota")
}

func TestFallbackFromCodexToClaude(t *testing.T) {
	t.Parallel()
	w := newFallback(t, exhausted("openai"), nil)
	r, o := w.runWithFallback("codex", "claude")
	w.wantAnswerFrom("anthropic", r, o, "codex quota")
}

func TestFallbackFromGeminiToCodex(t *testing.T) {
	t.Parallel()
	w := newFallback(t, exhausted("gemini"), nil)
	r, o := w.runWithFallback("gemini", "codex")
	w.wantAnswerFrom("openai", r, o, "gemini quota")
}

// Fallback is possible after a tool call that only reads, but not after one that may have
// changed something.
func TestFallbackAfterTools(t *testing.T) {
	t.Parallel()
	read := modeltest.Reply{modeltest.ToolCall{Name: "Read", Arguments: `{"file_path":"fact.txt"}`}}
	w := newFallback(t, exhausted("anthropic", read), map[string]string{"fact.txt": "the sky is blue\n"})
	r, o := w.runWithFallback("claude", "codex")
	w.wantAnswerFrom("openai", r, o, "claude quota")
	if got := w.providers(); got["anthropic"] < 2 {
		t.Errorf("requests %v: the tool was not called", got)
	}

	w = newFallback(t, exhausted("anthropic", modeltest.Reply{bash("touch made")}), map[string]string{".gitignore": "made\n"})
	r, o = w.runWithFallback("claude", "codex", "--access", "full")
	if o.code != 1 || r.Kind != "quota" || r.Runtime != "claude" || len(r.Attempts) != 0 || !strings.Contains(o.stderr, "may have changed something (tool Bash)") {
		t.Errorf("%+v\n%v", r, o)
	}
	if _, err := os.Stat(filepath.Join(w.repo, "made")); err != nil || w.providers()["openai"] != 0 {
		t.Errorf("%v, requests %v", err, w.providers())
	}
}

// The names of the reading tools of a runtime exist in the tested version of its CLI. The
// CLI either offers them to the model or, as Claude Code does with deferred tools, lists
// them.
func TestReadingToolsExist(t *testing.T) {
	t.Parallel()
	for id, setup := range map[string]setupFunc{"claude": newClaude, "gemini": newGemini} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := setup(t, modeltest.Always(answer("ok")), nil)
			o := w.exec("hello", "run", "--agent", id, "--model", w.modelID, "--access", "full", "--output-format", "ndjson", "--prompt", "-")
			listed, _, _ := strings.Cut(o.stdout, "\n")
			tools := w.wantRequests(1)[0].Tools()
			rt, _ := registry.Default().Lookup(id)
			for _, name := range rt.ReadingTools {
				if name == "StructuredOutput" { // exists with a schema only
					continue
				}
				if !slices.Contains(tools, name) && !strings.Contains(listed, `"`+name+`"`) {
					t.Errorf("%s is neither among %q nor in %s", name, tools, listed)
				}
			}
		})
	}
}
