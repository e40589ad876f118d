//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// corporate returns a config.toml that sends requests to the model of w.
func corporate(w *fixture) string {
	return fmt.Sprintf(`model_provider = "corp" # of the company
model_verbosity = "high"
[model_providers.corp]
name = "corp"
base_url = %q
wire_api = "responses"
env_key = "FAKE_API_KEY"
`, w.model.OpenAIURL())
}

// By default Codex does not use the user's config.toml. One warning says so if it sets
// a provider. Whatever the user decides, there is no warning.
func TestCodexUserConfig(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Always(answer("ok")), nil)
	writeFiles(t, w.home, map[string]string{".codex/config.toml": corporate(w), ".codex/AGENTS.md": ownMark + "\n"})
	file := filepath.Join(w.home, ".codex", "config.toml")

	r, o := w.run("hello")
	w.wantAnswer("ok", r, o)
	want := file + " is left out; it sets model_provider, model_providers.corp, which can change where requests go or how they are paid for; use --user-config on to use it, or off to silence this warning"
	if !slices.Equal(r.Warnings, []string{want}) {
		t.Errorf("warnings %q, want %q", r.Warnings, want)
	}
	r, o = w.run("hello", "--user-config", "off")
	w.wantAnswer("ok", r, o)
	if len(r.Warnings) > 0 {
		t.Errorf("warnings with --user-config off: %q", r.Warnings)
	}
	for _, request := range w.wantRequests(2) {
		if request.Verbosity() == "high" || request.Count(ownMark) != 0 {
			t.Error("the user's configuration was used")
		}
	}

	r, o = w.runWith("hello", nil, "-v", "--user-config", "on")
	w.wantAnswer("ok", r, o)
	if len(r.Warnings) > 0 || !strings.Contains(o.stderr, "your configuration: "+file+"\n") {
		t.Errorf("with --user-config on: %v", o)
	}
	w.env = append(w.env, "BUS_AGENT_USER_CONFIG=on")
	resumed, o := w.runWith("again", nil, "--resume", r.SessionID)
	w.wantAnswer("ok", resumed, o)
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.Args, r.UserConfig = nil, agent.UserConfigOn })
	d.sendWant("hello", "ok")
	d.stop()
	for _, request := range w.wantRequests(5)[2:] {
		if request.Verbosity() != "high" || request.Count(ownMark) != 1 {
			t.Errorf("verbosity %q, the user's AGENTS.md occurs %d times", request.Verbosity(), request.Count(ownMark))
		}
	}
	if out := w.mustExec("", "doctor", "codex"); !strings.Contains(out, file+"\n") {
		t.Errorf("doctor does not name the file: %s", out)
	}
}

// The lists of trusted projects and writable folders in the user's config.toml have no
// effect.
func TestCodexUserConfigGivesNoTrust(t *testing.T) {
	t.Parallel()
	for _, workdir := range []string{".", "services", "tree"} {
		t.Run(workdir, func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			files := layered()
			plant(t, fired, files, ".codex", "services/.codex")
			w := newCodex(t, func(r *modeltest.Request) modeltest.Reply {
				if len(r.ToolResults()) == 0 {
					return escape(fired)
				}
				return answer("done")
			}, files)
			at := filepath.Join(w.repo, workdir)
			if workdir == "tree" {
				at = filepath.Join(filepath.Dir(w.repo), workdir)
				w.git("worktree", "add", "-q", at)
			}
			config := corporate(w) + fmt.Sprintf("[sandbox_workspace_write]\nwritable_roots = [%q]\n", fired)
			for _, dir := range []string{"/", filepath.Dir(w.repo), w.repo, filepath.Join(w.repo, "services"), at} {
				if !strings.Contains(config, fmt.Sprintf("[projects.%q]", dir)) {
					config += fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", dir)
				}
			}
			writeFiles(t, w.home, map[string]string{".codex/config.toml": config})

			// The settings make plain Codex run what is planted.
			ctx, cancel := context.WithTimeout(t.Context(), runLimit)
			defer cancel()
			probe := t.TempDir()
			writeFiles(t, probe, map[string]string{"config.toml": config})
			cmd := exec.CommandContext(ctx, codex, "exec", "--json", "-C", at, "-s", "read-only", "-m", "gpt-5.5", "-c", "analytics.enabled=false", "--disable", "plugins", "hello")
			cmd.Env = append(w.environ(), "CODEX_HOME="+probe)
			if out, err := cmd.CombinedOutput(); err != nil || len(firedNames(t, fired)) == 0 {
				t.Fatalf("plain Codex runs nothing: %v\n%s", err, out)
			}
			for _, name := range firedNames(t, fired) {
				if err := os.Remove(filepath.Join(fired, name)); err != nil {
					t.Fatal(err)
				}
			}

			r, o := w.runWith("hello", nil, "--user-config", "on", "--workdir", at)
			w.wantAnswer("done", r, o)
			d := w.startSession(session.Options{}, func(r *agent.Request) { r.Args, r.UserConfig, r.Workdir = nil, agent.UserConfigOn, at })
			d.sendWant("hello", "done")
			d.stop()
			own := t.TempDir() // whose other settings count
			writeFiles(t, own, map[string]string{"config.toml": strings.Replace(config, fmt.Sprintf("%q", fired), "", 1)})
			r, o = w.runWith("hello", nil, "--env", "CODEX_HOME="+own, "--workdir", at)
			w.wantAnswer("done", r, o)
			checkNothingFired(t, fired)
		})
	}
}

// Claude Code and Gemini CLI use the user's settings unless they are switched off. What
// the user said of trusted folders has no effect in either case.
func TestUserConfigOfTheOthers(t *testing.T) {
	t.Parallel()
	type other struct {
		setup    setupFunc
		settings string // of the user, with a hook
		plants   func(t *testing.T, fired, stolen string) map[string]string
		trust    func(repo string) (file, text string)
	}
	trusted := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, o := range map[string]other{
		"claude": {newClaude, ".claude/settings.json", claudePlants, func(repo string) (string, string) {
			return ".claude.json", trusted(map[string]any{"projects": map[string]any{repo: map[string]any{"hasTrustDialogAccepted": true}}})
		}},
		"gemini": {newGemini, ".gemini/settings.json", geminiPlants, func(repo string) (string, string) {
			return ".gemini/trustedFolders.json", trusted(map[string]string{repo: "TRUST_FOLDER"})
		}},
	} {
		for mode, want := range map[string][]string{"on": {"user-hook"}, "off": nil} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				fired := newFiredDir(t)
				w := o.setup(t, modeltest.Always(answer("ok")), layered())
				plants := o.plants(t, fired, w.model.URL()+"/stolen")
				delete(plants, ".env")
				writeFiles(t, w.repo, plants)
				w.commit("hostile")
				program := programs(t, fired, "user-hook")
				settings := fmt.Sprintf(`{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":%q}]}]},"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`, program("user-hook"))
				file, text := o.trust(w.repo)
				writeFiles(t, w.home, map[string]string{o.settings: settings, file: text})
				r, out := w.run("hello", "-v", "--user-config", mode)
				w.wantAnswer("ok", r, out)
				if got := firedNames(t, fired); !slices.Equal(got, want) {
					t.Errorf("fired %q, want %q", got, want)
				}
				line := "your configuration: " + filepath.Join(w.home, o.settings)
				if mode == "off" {
					line += " (left out)"
				}
				if !strings.Contains(out.stderr, line+"\n") {
					t.Errorf("no line %q: %v", line, out)
				}
			})
		}
	}
}
