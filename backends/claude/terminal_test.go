package claude

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// In a terminal nothing is asked that lasts, nothing is installed, and the
// instructions are in a file that ends with the session.
func TestInteractive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("the rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := backendtest.Workspace(t, dir)
	for _, resume := range []string{"", "old"} {
		for _, access := range agent.Accesses() {
			r := registry.Invocation{Workdir: dir, Access: access, Resume: resume, Args: []string{"--settings", `{"mine":1}`}}
			r.TempDir, r.Environ = t.TempDir(), []string{"IS_SANDBOX=1"}
			setup, err := prepareInteractive(t.Context(), r, w)
			if err != nil {
				t.Fatal(err)
			}
			c, err := interactiveCommand(r.With(setup))
			if err != nil {
				t.Fatal(err)
			}
			file, _ := lastValue(c.Args, promptFileFlag)
			if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "the rules") || filepath.Dir(file) != r.TempDir || len(setup.Files) > 0 {
				t.Errorf("instructions %q in %s, %v", text, file, err)
			}
			for _, entry := range []string{"CLAUDE_CODE_SANDBOXED=1", "DISABLE_AUTOUPDATER=1"} {
				if !slices.Contains(c.Env, entry) {
					t.Errorf("environment %q", c.Env)
				}
			}
			settings, _ := settingsArg(c.Args)
			accepts := strings.Contains(settings, `"skipDangerousModePermissionPrompt":true`)
			if accepts != (access == agent.AccessFull) || !strings.Contains(settings, `"mine":1`) || strings.Count(strings.Join(c.Args, " "), "--settings") != 1 {
				t.Errorf("%s: settings %s in %q", access, settings, c.Args)
			}
			id, given := lastValue(c.Args, "--session-id")
			resumed, _ := lastValue(c.Args, "--resume")
			if given != (resume == "") || resumed != resume || given && setup.SessionID() != id {
				t.Errorf("session %q, resumed %q", id, resumed)
			}
		}
	}
}
