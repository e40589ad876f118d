package cursor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// prepared makes a repository with files and prepares a run in its directory
// sub. It fails when anything is written.
func prepared(t *testing.T, files map[string]string, inv registry.Invocation) (registry.Setup, error) {
	t.Helper()
	root := t.TempDir()
	files[".git/HEAD"] = "ref: refs/heads/main\n"
	files["sub/main.go"] = "package main\n"
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := backendtest.Workspace(t, filepath.Join(root, "sub"))
	setup, err := prepare(t.Context(), inv, w)
	if got := w.Actions(); len(got) > 0 {
		t.Errorf("written: %q", got)
	}
	return setup, err
}

func TestPrepareRefusesWhatTheRepositoryWouldRun(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		".cursor/hooks.json": "{}", ".cursor/mcp.json": "{}", "sub/.cursor/hooks.json": "", "sub/.cursor/mcp.json": "",
		".claude/settings.json": `{"hooks": {}}`, "sub/.claude/settings.local.json": `{"hooks": {}}`,
		"sub/.claude/settings.json": "{ // not plain JSON\n}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := prepared(t, map[string]string{name: content}, registry.Invocation{})
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), " "+name+" ") {
				t.Errorf("prepare = %v, want a usage error that names the file", err)
			}
			if _, err := prepared(t, map[string]string{name: content}, registry.Invocation{TrustWorkspace: true}); err != nil {
				t.Errorf("with trust: %v", err)
			}
		})
	}
}

func TestPrepareLetsOtherFilesBe(t *testing.T) {
	t.Parallel()
	setup, err := prepared(t, map[string]string{
		".cursor/rules/mine.mdc": "x", ".cursor/cli.json": "{}", ".claude/settings.json": `{"model": "opus"}`,
		"sub/deep/.cursor/hooks.json": "{}", "AGENTS.md": "rules\n",
	}, registry.Invocation{Resume: "id"})
	if err != nil {
		t.Fatal(err)
	}
	if setup.Resume != "" || setup.Warnings != nil || setup.Args != nil || setup.Env != nil {
		t.Errorf("setup = %+v, want the session alone", setup)
	}
}

func TestPrepareRefusesLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{".cursor", ".git"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("dangling", filepath.Join(root, ".cursor/hooks.json")); err != nil {
		t.Fatal(err)
	}
	chain, err := instructions.Discover(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := executed(registry.Invocation{Root: root}, chain); got != ".cursor/hooks.json" {
		t.Errorf("executed = %q: the link can be made whole at any time", got)
	}
}

func TestPrepareWarnsOfLongInstructions(t *testing.T) {
	t.Parallel()
	setup, err := prepared(t, map[string]string{"AGENTS.md": strings.Repeat("x\n", instructions.MaxBytes)}, registry.Invocation{})
	if err != nil || len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "524288 bytes") {
		t.Errorf("warnings = %q, %v", setup.Warnings, err)
	}
}
