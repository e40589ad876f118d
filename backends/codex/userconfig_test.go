package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/google/go-cmp/cmp"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                     nil,
		"model = \"gpt-5.5\"\n":                nil,
		"model_provider=\"corp\"":              {"model_provider"},
		" 'openai_base_url' = \"https://x\"\n": {"openai_base_url"},
		"# model_provider = \"corp\"\nservice_tier = \"flex\" # paid\n":                  {"service_tier"},
		"[model_providers.corp]\nname = \"x\"\nbase_url = \"y\"\n[tui]\nprofile = 1\n":   {"model_providers.corp"},
		"[model_providers]\n\"a.b\" = { base_url = \"y\" }\nc.base_url = \"z\"\n":        {"model_providers.a.b", "model_providers.c"},
		"model_providers.corp.base_url = \"y\"\nmodel_provider = \"corp\"\n":             {"model_providers.corp", "model_provider"},
		"x = \"\"\"\nmodel_provider = 1\n\\\"\"\"\nprofile = 2\n\"\"\"\nprofile = \"w\"": {"profile"},
		"x = '''\nmodel_provider = 1\n'''\n":                                             nil,
		"x = [\n  \"]\", # ]\n  \"model_provider = 1\",\n]\nprofile = \"w\"\n":           {"profile"},
		"[projects.\"/a\"]\nmodel_provider = 1\n[[hooks.Stop]]\nprofile = 1\n":           nil,
		"=\n[\n\"\n'''": nil,
	} {
		if got := routes(text); !slices.Equal(got, want) {
			t.Errorf("%q sets %q, want %q", text, got, want)
		}
	}
	if got := routeVariables("A=1\nexport OPENAI_BASE_URL=x\n HTTPS_PROXY = y\n#X_API_KEY=\nMY_API_KEY=z"); !slices.Equal(got, []string{"OPENAI_BASE_URL", "HTTPS_PROXY", "MY_API_KEY"}) {
		t.Errorf("variables %q", got)
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add("a.\"b\" = [1, {x = '''\n'''}] # c\n[[t]]\n")
	f.Fuzz(func(t *testing.T, text string) { routes(text) }) // it ends
}

// With the user's configuration on, the home has it, and the flags override its settings
// for trust and for folders that can be written.
func TestUserConfigInHome(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{".git/HEAD": "ref: refs/heads/main", "AGENTS.md": "of the project\n", "a/b/x": ""})
	for name, text := range map[string]string{"config.toml": "model_provider = \"corp\"\n", ".env": "OPENAI_BASE_URL=x\n", "AGENTS.md": "of the user\n", "rules/x.rules": ""} {
		p.write(filepath.Join(p.home, ".codex", name), text)
	}
	inv := registry.Invocation{Workdir: filepath.Join(p.dir, "a", "b"), Access: agent.AccessWrite, UserConfig: agent.UserConfigOn}
	setup, home, end := p.run(inv)
	defer end()
	for name, want := range map[string]string{"config.toml": "model_provider = \"corp\"\n", ".env": "OPENAI_BASE_URL=x\n", "rules/x.rules": ""} {
		if got, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(home, "AGENTS.md"))
	if user, project := strings.Index(string(text), "of the user"), strings.Index(string(text), "of the project"); err != nil || user < 0 || project < user {
		t.Errorf("AGENTS.md: %q, %v", text, err)
	}
	inv.Root = p.dir
	got, err := command(inv.With(setup))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{p.dir, filepath.Join(p.dir, "a"), inv.Workdir} {
		if !slices.ContainsFunc(got.Args, func(arg string) bool { return strings.Contains(arg, encode(dir)+`={trust_level="untrusted"}`) }) {
			t.Errorf("%s is not marked as untrusted: %q", dir, got.Args)
		}
	}
	if !slices.Contains(got.Args, "sandbox_workspace_write.writable_roots=[]") || slices.Contains(got.Args, "--ignore-user-config") {
		t.Errorf("arguments %q", got.Args)
	}
}

// Files says what is used, of the home of the user or of the caller.
func TestConfigFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write(filepath.Join(p.home, ".codex", "config.toml"), "profile = \"x\"\n")
	own := t.TempDir()
	p.write(filepath.Join(own, "config.toml"), "profile = \"x\"\n")
	file, ownFile := filepath.Join(p.home, ".codex", "config.toml"), filepath.Join(own, "config.toml")
	for name, c := range map[string]struct {
		mode agent.UserConfig
		env  []string
		want []agent.ConfigFile
	}{
		"default":                     {"", nil, []agent.ConfigFile{{Path: file, Routes: []string{"profile"}}}},
		"off":                         {agent.UserConfigOff, nil, []agent.ConfigFile{{Path: file, Routes: []string{"profile"}}}},
		"on":                          {agent.UserConfigOn, nil, []agent.ConfigFile{{Path: file, Used: true}}},
		"a home of the caller's":      {"", []string{"CODEX_HOME=" + own}, []agent.ConfigFile{{Path: ownFile, Used: true}}},
		"a home of the caller's, off": {agent.UserConfigOff, []string{"CODEX_HOME=" + own}, []agent.ConfigFile{{Path: ownFile, Routes: []string{"profile"}}}},
		"a home in the repository":    {agent.UserConfigOn, []string{"CODEX_HOME=" + p.dir}, nil},
	} {
		inv := registry.Invocation{Workdir: p.dir, Root: p.dir, UserConfig: c.mode, Env: c.env, Environ: append([]string{"HOME=" + p.home}, c.env...)}
		if diff := cmp.Diff(c.want, configFiles(inv)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
