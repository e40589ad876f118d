package codex

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func (p project) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, name); err != nil {
		p.t.Fatal(err)
	}
}

// On macOS every temporary directory has a name that goes through a symlink.
func TestRepositoryUnderAnotherName(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{".git/HEAD": "ref: x", "cfg/auth.json": "planted", "cfg/.env": "BASH_ENV=x", "conf/config.toml": ""})
	alias := filepath.Join(t.TempDir(), "alias")
	p.link(p.dir, alias)
	for name, home := range map[string]string{"relative": "cfg", "absolute": filepath.Join(alias, "cfg"), "physical": filepath.Join(p.dir, "cfg")} {
		r := registry.Invocation{Workdir: alias, Env: []string{"CODEX_HOME=" + home}}
		if _, err := p.prepare(r); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), ".env") {
			t.Errorf("%s: a home with .env in the repository: %v, want it refused", name, err)
		}
		r = registry.Invocation{Workdir: alias}
		r.Environ = []string{"CODEX_HOME=" + home}
		setup, used, end := p.run(r)
		if _, err := os.Lstat(filepath.Join(used, "auth.json")); err == nil {
			t.Errorf("%s: a login of the repository is linked in", name)
		}
		if len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "login") {
			t.Errorf("%s: warnings = %q, want one of the login", name, setup.Warnings)
		}
		end()
	}
	setup, err := p.prepare(registry.Invocation{Workdir: alias, Env: []string{"CODEX_HOME=conf"}})
	if err != nil || !slices.Contains(setup.Args, "--ignore-user-config") {
		t.Errorf("a home in the repository: %q, %v, want its settings left out", setup.Args, err)
	}
}

func TestLoginOfAHomeThatIsARepository(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{".git/HEAD": "ref: x", ".codex/auth.json": "login", "work/x": ""})
	p.home = p.dir
	setup, home, end := p.run(registry.Invocation{Workdir: filepath.Join(p.dir, "work")})
	defer end()
	if text, err := os.ReadFile(filepath.Join(home, "auth.json")); err != nil || string(text) != "login" || len(setup.Warnings) != 0 {
		t.Errorf("login = %q, %v, warnings %q", text, err, setup.Warnings)
	}
}

func TestPartOfAnIDFindsNoSession(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write(filepath.Join(p.dir, ".codex/bus/sessions/rollouts/2026/11/21/rollout-2026-11-21T00-00-00-"+thread+".jsonl"), "{}")
	for _, id := range []string{thread[24:], thread[9:], "00-00-" + thread} {
		if _, err := p.prepare(registry.Invocation{Resume: id}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v, want a usage error", id, err)
		}
	}
}

func TestLinkedInstructionsAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{".git/HEAD": "ref: x", "AGENTS.md": "be brief\n", "sub/x": ""})
	p.link("../AGENTS.md", filepath.Join(p.dir, "sub/AGENTS.md"))
	setup, home, end := p.run(registry.Invocation{Workdir: filepath.Join(p.dir, "sub")})
	defer end()
	text, err := os.ReadFile(filepath.Join(home, "AGENTS.md"))
	if err != nil || strings.Count(string(text), "be brief") != 1 || !slices.Contains(setup.Args, "project_doc_max_bytes=0") {
		t.Errorf("instructions = %q, %v, arguments %q", text, err, setup.Args)
	}
}

func TestHomeWhereTheWorkdirCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(p project){
		"a file":                 func(p project) { p.write(filepath.Join(p.dir, ".codex"), "") },
		"a link out of the repo": func(p project) { p.link(t.TempDir(), filepath.Join(p.dir, ".codex")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			p.write(filepath.Join(p.home, ".codex/auth.json"), "login")
			plant(p)
			tmp := t.TempDir()
			r := registry.Invocation{}
			r.TempDir = filepath.Join(tmp, "run")
			setup, home, end := p.run(r)
			if filepath.Dir(filepath.Dir(home)) != tmp || len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "resume") {
				t.Errorf("home = %s, warnings %q", home, setup.Warnings)
			}
			if info, err := os.Stat(home); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("home: %v, %v", info, err)
			}
			if text, err := os.ReadFile(filepath.Join(home, "auth.json")); err != nil || string(text) != "login" {
				t.Errorf("login = %q, %v", text, err)
			}
			p.write(filepath.Join(home, "sessions/rollout-"+thread+".jsonl"), "history")
			if warnings := end(); len(warnings) != 0 {
				t.Errorf("warnings: %q", warnings)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			r.Continue = true
			if _, err := p.prepare(r); err == nil {
				t.Error("a session is continued that cannot be there")
			}
		})
	}
}

func TestOverriddenInstructionsAreReported(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{".git/HEAD": "ref: x", "AGENTS.md": "a", "sub/AGENTS.md": "b", "sub/AGENTS.override.md": "c"})
	for _, r := range []registry.Invocation{{}, {Env: []string{"CODEX_HOME=" + t.TempDir()}, TrustWorkspace: true}} {
		r.Workdir = filepath.Join(p.dir, "sub")
		setup, err := p.prepare(r)
		if err != nil || len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "sub/AGENTS.override.md in place of sub/AGENTS.md") {
			t.Errorf("warnings = %q, %v", setup.Warnings, err)
		}
		if setup.Close != nil {
			setup.Close(t.Context())
		}
		r.RequireInstructions = true
		if _, err := p.prepare(r); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("required: %v, want a usage error", err)
		}
		if _, err := os.Lstat(filepath.Join(p.dir, "sub/.codex")); err == nil {
			t.Error("the private home is left")
		}
	}
}
