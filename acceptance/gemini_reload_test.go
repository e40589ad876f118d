//go:build acceptance

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"
)

// slowToStart are settings of the user with which Gemini CLI starts no sooner
// than the settings it has read are ten seconds old; it reads them again then.
const slowToStart = `{
	"mcpServers":{"slow":{"command":"sleep","args":["11"]}},
	"security":{"auth":{"selectedType":"gemini-api-key"}},
	"privacy":{"usageStatisticsEnabled":false}
}`

// A repository whose settings let its .env in gets nothing out of a slow start:
// the settings that Gemini CLI reads again are those of a folder it trusts.
func TestSlowGeminiInHostileRepository(t *testing.T) {
	t.Parallel()
	slow := func(t *testing.T, letIn bool) (w *fixture, fired string) {
		fired = newFiredDir(t)
		w = newGemini(t, callOnce(shell("echo hello")), layered())
		plants := geminiPlants(t, fired, w.model.URL()+"/stolen")
		if letIn {
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
				t.Errorf("%s %s was asked for %s", request.Method, request.Path, request.Model())
			}
		}
	}
	t.Run("that lets its variables in", func(t *testing.T) {
		t.Parallel()
		w, fired := slow(t, true)
		o := w.exec("hello", "run", "--agent", "gemini", "--access", "full", "--prompt", "-")
		if o.code != 2 || !strings.Contains(o.stderr, filepath.Join(w.repo, ".gemini", "settings.json")) {
			t.Errorf("want a usage error that names the file: %v", o)
		}
		runsNothing(t, w, fired)
	})
	t.Run("that does not", func(t *testing.T) {
		t.Parallel()
		w, fired := slow(t, false)
		r, o := w.run("hello", "--access", "full")
		w.wantAnswer("done", r, o)
		if o.took.Seconds() < 10 {
			t.Errorf("the start was not slow: this test proves nothing: %v", o)
		}
		runsNothing(t, w, fired)
	})
}

// In a home of the caller the settings are the caller's. Where they do not keep
// the repository's variables out, the run is refused.
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
					t.Errorf("%s was asked for %s", request.Path, request.Model())
				}
			}
		})
	}
}
