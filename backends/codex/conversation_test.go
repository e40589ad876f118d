package codex

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

func TestServerCommand(t *testing.T) {
	t.Parallel()
	const (
		head    = `app-server -c projects={"/w/sub"={trust_level="untrusted"},"/w"={trust_level="untrusted"}} `
		trusted = `app-server -c projects={"/w/sub"={trust_level="trusted"},"/w"={trust_level="trusted"}} `
		writes  = "-c sandbox_workspace_write.exclude_slash_tmp=true "
	)
	for name, c := range map[string]struct {
		change func(*registry.Invocation)
		want   string
	}{
		"write": {func(*registry.Invocation) {}, head + writes + tail},
		"read":  {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, head + tail},
		"full":  {func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, head + tail},
		"a model goes with the thread": {func(inv *registry.Invocation) { inv.Model = "gpt-5.5" },
			head + writes + tail},
		"effort and verbosity": {func(inv *registry.Invocation) { inv.ReasoningEffort, inv.Verbosity = "xhigh", "low" },
			head + writes + `-c model_reasoning_effort="xhigh" -c model_verbosity="low" ` + tail},
		"folders": {func(inv *registry.Invocation) { inv.AddDirs = []string{"/a", "/b"} },
			head + writes + `-c sandbox_workspace_write.writable_roots=["/a","/b"] ` + tail},
		"trust":    {func(inv *registry.Invocation) { inv.TrustWorkspace = true }, trusted + writes + tail},
		"own ones": {func(inv *registry.Invocation) { inv.Args = []string{"-c", "x=1"} }, head + writes + tail + " -c x=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Workdir: "/w/sub", Access: agent.AccessWrite, Prompt: "a prompt"}
			r.Root = "/w"
			c.change(&r)
			got, err := serverCommand(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Fields(c.want), got.Args); diff != "" {
				t.Error(diff)
			}
			if got.Stdin != "" || len(got.Env) != 0 {
				t.Errorf("stdin %q, env %q", got.Stdin, got.Env)
			}
		})
	}
}

// A project is named as it is written and as links resolve it, whatever is in its
// name.
func TestServerCommandNamesTheProject(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd, link := filepath.Join(dir, "a \"b\\\n=é"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(odd, 0o700), os.Symlink(odd, link)); err != nil {
		t.Fatal(err)
	}
	r := registry.Invocation{Workdir: link}
	r.Root = link
	got, err := serverCommand(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `projects={"` + link + `"={trust_level="untrusted"},"` + dir + `/a \"b\\\n=é"={trust_level="untrusted"}}`
	if got.Args[2] != want {
		t.Errorf("%s, want %s", got.Args[2], want)
	}
}

func TestSessionsThatAreRefused(t *testing.T) {
	t.Parallel()
	local := registry.Invocation{Workdir: "/w"}
	local.Variant = VariantLocal
	if err := conversation().Check(local); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("local: %v", err)
	}
	p := newProject(t, map[string]string{".git/HEAD": "ref: refs/heads/main", "home/x": ""})
	inside := registry.Invocation{Env: []string{"CODEX_HOME=" + filepath.Join(p.dir, "home")}}
	if _, err := p.prepareWith(prepareSession, inside); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a home inside the repository: %v", err)
	}
}

// The server gives no AGENTS.md of a project that it does not trust to the model,
// so bus-agent delivers it.
func TestSessionInstructions(t *testing.T) {
	t.Parallel()
	const text = "the rules of this place\n"
	own := t.TempDir()
	for name, c := range map[string]struct {
		request                  registry.Invocation
		inHome, inPrefix, native bool
	}{
		"a private home":             {registry.Invocation{}, true, false, false},
		"trust":                      {registry.Invocation{TrustWorkspace: true}, false, false, true},
		"a home of the caller":       {registry.Invocation{Env: []string{"CODEX_HOME=" + own}}, false, true, false},
		"and resumed":                {registry.Invocation{Env: []string{"CODEX_HOME=" + own}, Resume: thread}, false, false, false},
		"required when resumed":      {registry.Invocation{Env: []string{"CODEX_HOME=" + own}, Resume: thread, RequireInstructions: true}, false, true, false},
		"a trusted home of a caller": {registry.Invocation{Env: []string{"CODEX_HOME=" + own}, TrustWorkspace: true}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{".git/HEAD": "ref: refs/heads/main", "AGENTS.md": text})
			setup, err := p.prepareWith(prepareSession, c.request)
			if err != nil {
				t.Fatal(err)
			}
			if setup.Close != nil {
				defer setup.Close(t.Context())
			}
			home, _ := agent.LookupEnv(setup.Env, homeEnv)
			data, _ := os.ReadFile(filepath.Join(home, instructions.FileName)) // not there is empty
			if got := strings.Contains(string(data), text); got != c.inHome {
				t.Errorf("the home holds %q", data)
			}
			if got := strings.Contains(setup.Prefix, text); got != c.inPrefix {
				t.Errorf("prefix %q", setup.Prefix)
			}
			if got := !slices.Contains(setup.Args, "project_doc_max_bytes=0"); got != c.native {
				t.Errorf("arguments %q", setup.Args)
			}
		})
	}
}
