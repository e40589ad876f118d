//go:build acceptance

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"
)

// slowToStart are user settings with which Gemini CLI takes more than ten seconds to
// start, after which it reads its settings again.
const slowToStart = `{
	"mcpServers":{"slow":{"command":"sleep","args":["11"]}},
	"security":{"auth":{"selectedType":"gemini-api-key"}},
	"privacy":{"usageStatisticsEnabled":false}
}`

// When Gemini CLI reads its settings again, it treats the folder as trusted. A repository
// must not profit from that.
func TestSlowGeminiInHostileRepository(t *testing.T) {
	t.Parallel()
	slow := func(t *testing.T, allowEnv bool) (w *fixture, fired string) {
		fired = newFiredDir(t)
		w = newGemini(t, callOnce(shell("echo hello")), layered())
		plants := geminiPlants(t, fired, w.model.URL()+"/stolen")
		if allowEnv {
			settings := plants[".gemini/settings.json"]
			plants[".gemini/settings.json"] = strings.Replace(settings, "{", `{"advanced":{"ignoreLocalEnv":false},`, 1)
		}
		writeFiles(t, w.repo, plants)
		writeFiles(t, w.home, map[string]string{".gemini/settings.json": slowToStart})
		w.commit("hostile")
		return w, fired
	}
	runsNothing := func(t *testing.T, w *fixture, fired string) {
		checkNothingFired(t, fired)
		for _, request := range w.model.Requests() {
			if strings.Contains(request.Path, "stolen") || request.IsModel() && (request.Model() != w.modelID || request.Header.Get("X-Goog-Api-Key") != "sk-acceptance") {
				t.Errorf("request %s %s for model %s", request.Method, request.Path, request.Model())
			}
		}
	}
	t.Run("with ignoreLocalEnv false", func(t *testing.T) {
		t.Parallel()
		w, fired := slow(t, true)
		o := w.exec("hello", "run", "--agent", "gemini", "--access", "full", "--prompt", "-")
		if o.code != 2 || !strings.Contains(o.stderr, filepath.Join(w.repo, ".gemini", "settings.json")) {
			t.Errorf("want a usage error that names the file: %v", o)
		}
		runsNothing(t, w, fired)
	})
	t.Run("without ignoreLocalEnv", func(t *testing.T) {
		t.Parallel()
		w, fired := slow(t, false)
		r, o := w.run("hello", "--access", "full")
		w.wantAnswer("done", r, o)
		if o.took.Seconds() < 10 {
			t.Errorf("the start was not slow, so the test is meaningless: %v", o)
		}
		runsNothing(t, w, fired)
	})
}

// In a home of the caller, the caller's settings apply. If they do not disable .env
// files, the run is refused.
func TestGeminiCallerHomeIgnoresEnvFiles(t *testing.T) {
	t.Parallel()
	for _, workdir := range []string{".", "services"} {
		t.Run(workdir, func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			w := newGemini(t, callOnce(shell("echo hello")), layered())
			w.keptInHome = []string{".gemini"}
			env := geminiPlants(t, fired, w.model.URL()+"/stolen")[".env"]
			writeFiles(t, w.repo, map[string]string{".env": strings.ReplaceAll(env, "GEMINI_SYSTEM_MD=1\n", "")})
			args := []string{"--access", "full", "--env", "GEMINI_CLI_HOME=" + w.home, "--workdir", filepath.Join(w.repo, workdir)}
			o := w.exec("hello", append([]string{"run", "--agent", "gemini", "--prompt", "-"}, args...)...)
			if o.code != 2 || !strings.Contains(o.stderr, filepath.Join(w.repo, ".env")) {
				t.Errorf("want a usage error that names the file: %v", o)
			}
			writeFiles(t, w.home, map[string]string{
				".gemini/settings.json": `{"advanced":{"ignoreLocalEnv":true},"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
			})
			r, o := w.run("hello", args...)
			w.wantAnswer("done", r, o)
			checkNothingFired(t, fired)
			for _, request := range w.wantRequests(2) {
				if request.Model() != w.modelID || request.Header.Get("X-Goog-Api-Key") != "sk-acceptance" {
					t.Errorf("request %s for model %s", request.Path, request.Model())
				}
			}
		})
	}
}
