package codex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/google/go-cmp/cmp"
)

const thread = "01a1fb6f-7d8b-73f3-89e8-34d0a0b2c9d0"

// project is a workdir and a user's home next to it.
type project struct {
	t    *testing.T
	dir  string
	home string
}

func newProject(t *testing.T, files map[string]string) project {
	t.Helper()
	p := project{t: t, dir: t.TempDir(), home: t.TempDir()}
	for name, text := range files {
		p.write(filepath.Join(p.dir, name), text)
	}
	return p
}

func (p project) write(file, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) prepare(inv registry.Invocation) (registry.Setup, error) {
	p.t.Helper()
	return p.prepareWith(prepare, inv)
}

func (p project) prepareWith(prepare func(context.Context, registry.Invocation, *instructions.Workspace) (registry.Setup, error), inv registry.Invocation) (registry.Setup, error) {
	p.t.Helper()
	if inv.Workdir == "" {
		inv.Workdir = p.dir
	}
	inv.Root = instructions.FindRoot(inv.Workdir)
	inv.Environ = append([]string{"HOME=" + p.home}, append(inv.Environ, inv.Env...)...)
	w := backendtest.Workspace(p.t, inv.Workdir)
	return prepare(p.t.Context(), inv, w)
}

// run prepares and returns the home of the run and what takes it back.
func (p project) run(inv registry.Invocation) (setup registry.Setup, home string, end func() []string) {
	p.t.Helper()
	setup, err := p.prepare(inv)
	if err != nil {
		p.t.Fatal(err)
	}
	home, _ = agent.LookupEnv(setup.Env, homeEnv)
	return setup, home, func() []string { return setup.Close(p.t.Context()) }
}

func TestHomeIsFreshAndGoes(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		".codex/bus/config.toml": "planted", ".codex/bus/.env": "BASH_ENV=planted", ".git/HEAD": "ref: refs/heads/main",
	})
	setup, home, end := p.run(registry.Invocation{})
	if filepath.Dir(home) != filepath.Join(p.dir, ".codex", "bus") {
		t.Fatalf("home = %s", home)
	}
	// They say whose home it is and what of it is kept when that dies.
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 2 || entries[0].Name() != ".bus-agent-owner" || entries[1].Name() != ".bus-agent-salvage" {
		t.Errorf("a fresh home holds %v, %v", entries, err)
	}
	for _, flag := range []string{"--ignore-user-config", "--ignore-rules"} {
		if !slices.Contains(setup.Args, flag) {
			t.Errorf("arguments %q lack %s", setup.Args, flag)
		}
	}
	if warnings := end(); len(warnings) != 0 {
		t.Errorf("warnings: %q", warnings)
	}
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home is left: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, ".codex/bus/config.toml")); err != nil || string(text) != "planted" {
		t.Errorf("a file of the repository was changed: %q, %v", text, err)
	}
}

func TestNothingIsLeftOfARunWithoutSession(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	_, _, end := p.run(registry.Invocation{})
	end()
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestSettingsOfTheRepositoryCountOnlyWithTrust(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		".git/HEAD": "ref: x", ".codex/config.toml": "", "sub/.codex/hooks.json": "{}", "other/.codex/rules/x": "",
	})
	workdir := filepath.Join(p.dir, "sub")
	setup, _, end := p.run(registry.Invocation{Workdir: workdir})
	end()
	var said []string
	for _, w := range setup.Warnings {
		said = append(said, strings.Fields(w)[2])
	}
	if diff := cmp.Diff([]string{".codex/config.toml", "sub/.codex/hooks.json"}, said); diff != "" {
		t.Error(diff)
	}
	setup, _, end = p.run(registry.Invocation{Workdir: workdir, TrustWorkspace: true})
	end()
	if setup.Args[0] != "--trust" || slices.Contains(setup.Args, "--ignore-user-config") || len(setup.Warnings) != 0 {
		t.Errorf("trusted: %q, %q", setup.Args, setup.Warnings)
	}
}

func TestLoginIsLinkedIn(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"elsewhere/auth.json": "planted"})
	p.write(filepath.Join(p.home, ".codex/auth.json"), "login")
	own := t.TempDir()
	p.write(filepath.Join(own, "auth.json"), "other login")
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"of the user's home":                {nil, "login"},
		"of an inherited home":              {[]string{"CODEX_HOME=" + own}, "other login"},
		"not of a home without one":         {[]string{"CODEX_HOME=" + t.TempDir()}, ""},
		"not of a home inside the workdir":  {[]string{"CODEX_HOME=" + filepath.Join(p.dir, "elsewhere")}, ""},
		"not of a relative one in the same": {[]string{"CODEX_HOME=elsewhere"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := registry.Invocation{}
			r.Environ = c.environ
			_, home, end := p.run(r)
			text, err := os.ReadFile(filepath.Join(home, "auth.json"))
			if string(text) != c.want || (c.want == "") != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("login = %q, %v, want %q", text, err, c.want)
			}
			end()
			if text, err := os.ReadFile(filepath.Join(p.home, ".codex/auth.json")); err != nil || string(text) != "login" {
				t.Errorf("the user's login is now %q, %v", text, err)
			}
		})
	}
}

func TestReplacedLoginIsNotLost(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write(filepath.Join(p.home, ".codex/auth.json"), "login")
	_, home, end := p.run(registry.Invocation{})
	login := filepath.Join(home, "auth.json")
	if err := os.Remove(login); err != nil {
		t.Fatal(err)
	}
	p.write(login, "refreshed")
	warnings := end()
	if len(warnings) != 1 || !strings.Contains(warnings[0], login) {
		t.Errorf("warnings = %q, want one that names %s", warnings, login)
	}
	if text, err := os.ReadFile(login); err != nil || string(text) != "refreshed" {
		t.Errorf("login = %q, %v, want it kept", text, err)
	}
}

func TestSessionsAreKeptForResume(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	const file = "sessions/2026/11/21/rollout-2026-11-21T00-00-00-" + thread + ".jsonl"
	_, home, end := p.run(registry.Invocation{})
	p.write(filepath.Join(home, file), "history")
	if warnings := end(); len(warnings) != 0 {
		t.Fatalf("warnings: %q", warnings)
	}
	for name, r := range map[string]registry.Invocation{
		"by ID": {Resume: thread}, "the latest": {Continue: true},
	} {
		setup, home, end := p.run(r)
		if setup.Resume != thread {
			t.Errorf("%s: ID = %q, want %s", name, setup.Resume, thread)
		}
		if text, err := os.ReadFile(filepath.Join(home, file)); err != nil || string(text) != "history" {
			t.Errorf("%s: session = %q, %v", name, text, err)
		}
		end()
	}
	for name, r := range map[string]registry.Invocation{
		"unknown ID": {Resume: "1" + thread[1:]}, "part of an ID": {Resume: "d0"}, "path": {Resume: "../../x"},
	} {
		if _, err := p.prepare(r); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
	if _, err := newProject(t, nil).prepare(registry.Invocation{Continue: true}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("nothing to continue: %v, want a usage error", err)
	}
}

func TestInstructionsAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789\n", instructions.MaxBytes/11+1)
	for name, c := range map[string]struct {
		files   map[string]string
		workdir string
		want    []string // settings
		own     bool     // delivered by our text
	}{
		"none":               {files: map[string]string{"x": ""}, want: []string{"project_doc_max_bytes=1"}},
		"in the workdir":     {files: map[string]string{"AGENTS.md": "12345"}, want: []string{"project_doc_max_bytes=21"}},
		"two layers":         {files: map[string]string{".git/HEAD": "ref: x", "AGENTS.md": "12345", "a/b/AGENTS.md": "123"}, workdir: "a/b", want: []string{"project_doc_max_bytes=40"}},
		"no repository":      {files: map[string]string{"AGENTS.md": "12345", "a/AGENTS.md": "123"}, workdir: "a", want: []string{"project_doc_max_bytes=19"}},
		"an empty .git":      {files: map[string]string{".git/HEAD": "ref: x", "AGENTS.md": "1", "a/b/AGENTS.md": "1", "a/b/.git/": ""}, workdir: "a/b", want: []string{"project_doc_max_bytes=34", `project_root_markers=["../BASE/a/b"]`}},
		"an override":        {files: map[string]string{".git/HEAD": "ref: x", "AGENTS.override.md": "1234567", "a/AGENTS.md": "123"}, workdir: "a", want: []string{"project_doc_max_bytes=26"}},
		"a great override":   {files: map[string]string{".git/HEAD": "ref: x", "AGENTS.override.md": big, "a/AGENTS.md": "123"}, workdir: "a", want: []string{"project_doc_max_bytes=0"}, own: true},
		"over the limit":     {files: map[string]string{"AGENTS.md": big}, want: []string{"project_doc_max_bytes=0"}, own: true},
		"not a regular file": {files: map[string]string{"AGENTS.md/x": ""}, want: []string{"project_doc_max_bytes=0"}, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			for file, text := range c.files {
				if dir, ok := strings.CutSuffix(file, "/"); ok {
					if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				p.write(filepath.Join(p.dir, file), text)
			}
			setup, home, end := p.run(registry.Invocation{Workdir: filepath.Join(p.dir, c.workdir)})
			defer end()
			var settings []string
			for i, arg := range setup.Args {
				if arg == "-c" {
					settings = append(settings, strings.ReplaceAll(setup.Args[i+1], filepath.Base(p.dir), "BASE"))
				}
			}
			databases := fmt.Sprintf("sqlite_home=%q", strings.ReplaceAll(home, filepath.Base(p.dir), "BASE"))
			if diff := cmp.Diff(append([]string{databases}, c.want...), settings); diff != "" {
				t.Error(diff)
			}
			text, err := os.ReadFile(filepath.Join(home, "AGENTS.md"))
			if c.own != (err == nil) || len(text) > instructions.MaxBytes {
				t.Errorf("our text: %d bytes, %v, want any: %t", len(text), err, c.own)
			}
		})
	}
}

func TestHomeOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"AGENTS.md": "12345", "inside/x": "", "armed/.env": "BASH_ENV=x"})
	outside := t.TempDir()
	request := func(home string) registry.Invocation { return registry.Invocation{Env: []string{"CODEX_HOME=" + home}} }

	// Codex gives the model no AGENTS.md of a project that is not trusted.
	for name, c := range map[string]struct {
		change func(*registry.Invocation)
		limit  int
		text   string
	}{
		"not trusted":           {func(*registry.Invocation) {}, 0, "12345"},
		"user config":           {func(inv *registry.Invocation) { inv.UserConfig = agent.UserConfigOn }, 0, "12345"},
		"resumed":               {func(inv *registry.Invocation) { inv.Resume = thread }, 0, ""},
		"required when resumed": {func(inv *registry.Invocation) { inv.Resume, inv.RequireInstructions = thread, true }, 0, "12345"},
		"trusted":               {func(inv *registry.Invocation) { inv.TrustWorkspace = true }, 21, ""},
	} {
		inv := request(outside)
		c.change(&inv)
		setup, err := p.prepare(inv)
		if err != nil || setup.Close != nil || len(setup.Env) != 0 {
			t.Fatalf("%s: setup = %+v, %v", name, setup, err)
		}
		if diff := cmp.Diff([]string{"-c", fmt.Sprintf("project_doc_max_bytes=%d", c.limit)}, setup.Args); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if strings.Contains(setup.Prefix, "12345") != (c.text != "") {
			t.Errorf("%s: prefix %q, want %q", name, setup.Prefix, c.text)
		}
	}
	setup, err := p.prepare(request(filepath.Join(p.dir, "inside")))
	if err != nil || !slices.Contains(setup.Args, "--ignore-user-config") || len(setup.Warnings) != 1 {
		t.Errorf("inside the repository: %+v, %v", setup, err)
	}
	if _, err = p.prepare(request("armed")); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), ".env") {
		t.Errorf("a home with .env: %v, want it refused", err)
	}
	trusted := request("armed")
	trusted.TrustWorkspace = true
	if setup, err = p.prepare(trusted); err != nil || slices.Contains(setup.Args, "--ignore-user-config") {
		t.Errorf("a trusted home: %+v, %v", setup, err)
	}
	if _, err = p.prepare(request(filepath.Join(outside, "none"))); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a missing home: %v, want a usage error", err)
	}
	if _, err = p.prepare(request("")); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("an empty home: %v, want a usage error", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(p.dir, ".codex")); len(entries) != 0 {
		t.Errorf("a private home was made too: %v", entries)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write(filepath.Join(p.home, ".codex/auth.json"), "login")
	chain, err := instructions.Discover(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := instructions.Open(chain, true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := registry.Invocation{Workdir: p.dir}
	r.Root = p.dir
	r.Environ = []string{"HOME=" + p.home}
	setup, err := prepare(t.Context(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	setup.Close(t.Context())
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 0 {
		t.Errorf("written: %v, %v", entries, err)
	}
	if len(w.Actions()) < 2 {
		t.Errorf("actions = %q, want the home and the login", w.Actions())
	}
}
