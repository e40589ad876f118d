package claude

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// repository makes a repository with files; a value that begins with "->" is a
// link. It returns its root.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
	for name, content := range files {
		file := filepath.Join(root, name)
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, file, content)
	}
	return root
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func prepared(t *testing.T, workdir string, inv registry.Invocation) (registry.Setup, error) {
	t.Helper()
	w := backendtest.Workspace(t, workdir)
	chain := w.Chain()
	inv.Workdir, inv.Root = chain.Workdir, chain.Root
	before := listing(t, chain.Root)
	setup, err := prepare(t.Context(), inv, w)
	if diff := cmp.Diff(before, listing(t, chain.Root)); diff != "" {
		t.Errorf("the repository was changed:\n%s", diff)
	}
	return setup, err
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each marker once, whatever the layout is.
func TestInstructionsReachTheModelOnce(t *testing.T) {
	t.Parallel()
	const deep = "sub/deep"
	for _, test := range []struct {
		name    string
		workdir string
		files   map[string]string
		want    []string // markers in order
	}{
		{"nothing", "", nil, nil},
		{"AGENTS.md", "", map[string]string{"AGENTS.md": "ROOT\n"}, []string{"ROOT"}},
		{"nested", deep, map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "sub/deep/AGENTS.md": "DEEP\n", "sub/other/AGENTS.md": "OTHER\n"}, []string{"ROOT", "SUB", "DEEP"}},
		{"empty CLAUDE.md", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": ""}, []string{"ROOT"}},
		{"CLAUDE.md too", deep, map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "OWN\n", "sub/.claude/CLAUDE.md": "DOT\n", "sub/deep/CLAUDE.local.md": "LOCAL"}, []string{"ROOT", "OWN", "DOT", "LOCAL"}},
		{"CLAUDE.md alone", "", map[string]string{"CLAUDE.md": "OWN\n"}, []string{"OWN"}},
		{"import", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "OWN\n@AGENTS.md\n"}, []string{"ROOT", "OWN"}},
		{"import alone, in comments", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "<!-- begin MARK -->\n@./AGENTS.md\n<!-- end MARK -->\n"}, []string{"ROOT"}},
		{"import from .claude", "", map[string]string{"AGENTS.md": "ROOT\n", ".claude/CLAUDE.md": "OWN\n@../AGENTS.md\n"}, []string{"ROOT", "OWN"}},
		{"import of the parent's", deep, map[string]string{"AGENTS.md": "ROOT\n", "sub/deep/CLAUDE.md": "OWN\n@../../AGENTS.md\n"}, []string{"ROOT", "OWN"}},
		{"other imports stay", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "@docs/OWN.md\n"}, []string{"ROOT", "OWN"}},
		{"link", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "->AGENTS.md"}, []string{"ROOT"}},
		{"copy", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "ROOT\n", "CLAUDE.local.md": "ROOT\n"}, []string{"ROOT"}},
		{"link out of the repository", "", map[string]string{"AGENTS.md": "ROOT\n", "CLAUDE.md": "->/etc/passwd"}, []string{"ROOT"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := repository(t, test.files)
			workdir := filepath.Join(root, test.workdir)
			if err := os.MkdirAll(workdir, 0o755); err != nil {
				t.Fatal(err)
			}
			setup, err := prepared(t, workdir, registry.Invocation{})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				if len(setup.Args)+len(setup.Files) > 0 {
					t.Errorf("args %q, %d files", setup.Args, len(setup.Files))
				}
				return
			}
			if diff := cmp.Diff([]string{"--append-system-prompt-file", "/dev/fd/3"}, setup.Args); diff != "" {
				t.Error(diff)
			}
			text := string(setup.Files[0])
			at := -1
			for _, marker := range test.want {
				if n := strings.Count(text, marker); n != 1 {
					t.Errorf("%s occurs %d times:\n%s", marker, n, text)
				}
				if i := strings.Index(text, marker); i <= at {
					t.Errorf("%s is out of order:\n%s", marker, text)
				} else {
					at = i
				}
			}
			for _, marker := range []string{"OTHER", "MARK", "root:"} {
				if strings.Contains(text, marker) {
					t.Errorf("%s occurs:\n%s", marker, text)
				}
			}
		})
	}
}

func TestUserMemoryIsLeftToClaudeCode(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{".claude/CLAUDE.md": "USER\n", "CLAUDE.md": "OWN\n"})
	r := registry.Invocation{}
	r.Environ = []string{"HOME=" + root}
	setup, err := prepared(t, root, r)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(setup.Files[0]); strings.Contains(text, "USER") || !strings.Contains(text, "OWN") {
		t.Errorf("text %q", text)
	}
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"AGENTS.md": strings.Repeat("agents line\n", 10_000),
		"CLAUDE.md": strings.Repeat("claude line\n", 20_000),
	})
	setup, err := prepared(t, root, registry.Invocation{})
	if err != nil {
		t.Fatal(err)
	}
	text := string(setup.Files[0])
	if len(text) > instructions.MaxBytes || !strings.HasSuffix(text, "claude line\n[cut here]\n") || strings.Count(text, "agents line\n") != 10_000 {
		t.Errorf("%d bytes, ending in %q", len(text), text[len(text)-40:])
	}
	if len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "CLAUDE.md was cut") {
		t.Errorf("warnings %q", setup.Warnings)
	}
}

func TestLeftOutSettingsAreNamed(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{".claude/settings.json": "{}", ".mcp.json": "{}", "sub/.mcp.json": "{}"})
	setup, err := prepared(t, filepath.Join(root, "sub"), registry.Invocation{})
	if err != nil {
		t.Fatal(err)
	}
	if len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], ".claude/settings.json, .mcp.json and sub/.mcp.json are left out") {
		t.Errorf("warnings %q", setup.Warnings)
	}
	setup, err = prepared(t, filepath.Join(root, "sub"), registry.Invocation{TrustWorkspace: true})
	if err != nil || len(setup.Warnings) != 0 {
		t.Errorf("trusted: warnings %q, %v", setup.Warnings, err)
	}
}

func TestTrustedWorkspace(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{
		"AGENTS.md": "ROOT\n", "CLAUDE.md": "OWN @AGENTS.md\n", "sub/AGENTS.md": "SUB\n", "sub/CLAUDE.md": "->AGENTS.md",
		".claude/rules/a.md": "ROOT\n", ".claude/rules/b.md": "B\n", ".claude/rules/x/y/c.md": "SUB\n", ".claude/rules/x/y/c.txt": "SUB\n",
		"settings.json": `{"model":"m", /* mine */ "claudeMdExcludes":["/x"],"enabledPlugins":{"p@m":true},}`,
	})
	for _, args := range [][]string{nil, {"--settings=../settings.json"}, {"--settings", string(must(os.ReadFile(filepath.Join(root, "settings.json"))))}} {
		setup, err := prepared(t, filepath.Join(root, "sub"), registry.Invocation{TrustWorkspace: true, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		text := string(setup.Files[0])
		if strings.Count(text, "ROOT") != 1 || strings.Count(text, "SUB") != 1 || strings.Contains(text, "OWN") {
			t.Errorf("text %q", text)
		}
		value, ok := settingsArg(setup.Args)
		if !ok || !slices.Contains(setup.Args, "--append-system-prompt-file") {
			t.Fatalf("args %q", setup.Args)
		}
		var got struct {
			Model    string          `json:"model"`
			Excludes []string        `json:"claudeMdExcludes"`
			Plugins  map[string]bool `json:"enabledPlugins"`
		}
		if err := json.Unmarshal([]byte(value), &got); err != nil {
			t.Fatal(err)
		}
		var want []string
		if args != nil {
			want = append(want, "/x")
		}
		for _, name := range []string{"AGENTS.md", "sub/AGENTS.md", ".claude/rules/a.md", ".claude/rules/x/y/c.md", "sub/CLAUDE.md"} {
			want = append(want, filepath.Join(root, name))
		}
		if diff := cmp.Diff(want, got.Excludes); diff != "" {
			t.Error(diff)
		}
		if got.Plugins[agentsPlugin] || len(got.Plugins) == 0 || args != nil && (got.Model != "m" || !got.Plugins["p@m"]) {
			t.Errorf("settings %s", value)
		}
	}
}

func TestRulesAreBounded(t *testing.T) {
	t.Parallel()
	for depth, refused := range map[int]bool{maxRuleDepth - 1: false, maxRuleDepth + 1: true} {
		root := repository(t, map[string]string{"AGENTS.md": "ROOT\n", ".claude/rules/" + strings.Repeat("d/", depth) + "a.md": "A\n"})
		if _, err := prepared(t, root, registry.Invocation{TrustWorkspace: true}); errors.Is(err, agent.ErrUsage) != refused {
			t.Errorf("%d folders: %v", depth, err)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{"AGENTS.md": "ROOT\n"})
	for _, args := range [][]string{
		{"--settings", "missing.json"}, {"--settings", "."}, {"--settings", "{"}, {"--settings", `{"claudeMdExcludes":7}`},
		{"--settings", `{"enabledPlugins":[]}`}, {"--settings", `{"x":"` + strings.Repeat("x", 200_000) + `"}`},
		{"--append-system-prompt-file", "x"},
	} {
		if _, err := prepared(t, root, registry.Invocation{TrustWorkspace: true, Args: args}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%.60q: %v", args, err)
		}
	}
}

func TestResumeIsPassedOn(t *testing.T) {
	t.Parallel()
	setup, err := prepared(t, repository(t, nil), registry.Invocation{Resume: "id"})
	if err != nil || setup.Resume != "" {
		t.Errorf("resume %q, %v", setup.Resume, err)
	}
}
