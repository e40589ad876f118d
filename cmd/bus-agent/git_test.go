package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
)

// gitIn returns what git answers in the sandbox's workdir in the environment that
// the agent was given, as NAME=value lines.
func gitIn(t *testing.T, s *sandbox, environ string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testneed.Program(t, "git"), args...)
	cmd.Dir = s.path("work")
	cmd.Env = append(strings.Split(strings.TrimSpace(environ), "\n"), "GIT_CONFIG_NOSYSTEM=1")
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

// No runtime's git runs what the repository configures, unless it is trusted; what
// the user configures stays.
func TestHostileGitConfigurationOfTheRepository(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimesWithRuns() {
		for name, c := range map[string]struct {
			flags []string
			want  string // filter.x.clean, filter.lfs.clean, user.name, core.editor
			warns bool
		}{
			"untrusted": {nil, "|users|me|counted", true},
			"by --env":  {[]string{"--env", "GIT_CONFIG_PARAMETERS='core.editor=given'"}, "|users|me|given", true},
			"to read":   {[]string{"--access", "read"}, "|users|me|counted", true},
			"trusted":   {[]string{"--trust-workspace"}, "evil|evil|me|counted", false},
		} {
			t.Run(rt.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSandbox(t, rt.Executables[0], "env environ\n")
				replace(t, s.path("bin/"+rt.Executables[0]+".play"), "env "+s.path("environ")+"\n", 0o644)
				for _, dir := range []string{"work/.git/objects", "work/.git/refs"} {
					if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				replace(t, s.path("work/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
				replace(t, s.path("work/.git/config"), "[filter \"x\"]\n\tclean = evil\n[filter \"lfs\"]\n\tclean = evil\n[core]\n\teditor = evil\n", 0o644)
				replace(t, s.path("home/.gitconfig"), "[filter \"lfs\"]\n\tclean = users\n[user]\n\tname = me\n", 0o644)
				cmd := s.command(append([]string{"run", "--agent", rt.ID, "--text", "x"}, c.flags...)...)
				cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.editor", "GIT_CONFIG_VALUE_0=counted")
				out, _ := output(cmd)
				environ, err := os.ReadFile(s.path("environ"))
				if err != nil {
					t.Fatalf("%v:\n%s", err, out)
				}
				values := map[string]string{} // the last one counts
				for line := range strings.Lines(gitIn(t, s, string(environ), "config", "--list")) {
					key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
					values[key] = value
				}
				var got []string
				for _, key := range []string{"filter.x.clean", "filter.lfs.clean", "user.name", "core.editor"} {
					got = append(got, values[key])
				}
				if strings.Join(got, "|") != c.want {
					t.Errorf("git has %q, want %s:\n%s", got, c.want, environ)
				}
				if warns := strings.Contains(out, filepath.Join("work/.git/config")+": filter.x.clean, filter.lfs.clean, core.editor; use --trust-workspace"); warns != c.warns {
					t.Errorf("warns: %t:\n%s", warns, out)
				}
			})
		}
	}
}

// Around the workdir or an added directory there can be a repository that git uses, since
// it refuses a nearer one. What that has next to the workdir is found too, and nothing in
// it is started by its name.
func TestRepositoryAroundARefusedOne(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"the workdir":        {"--workdir", "work/outer/pkg"},
		"an added directory": {"--workdir", "work/inner", "--add-dir", "work/outer/pkg"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, "codex", "env environ\n")
			replace(t, s.path("bin/codex.play"), "env "+s.path("environ")+"\n", 0o644)
			for _, git := range []string{"work/outer/.git", "work/outer/other/.git"} {
				for _, dir := range []string{"objects", "refs"} {
					if err := os.MkdirAll(s.path(git+"/"+dir), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				replace(t, s.path(git+"/HEAD"), "ref: refs/heads/main\n", 0o644)
			}
			replace(t, s.path("work/outer/other/.git/config"), "[core]\n\tfsmonitor = evil\n", 0o644)
			for _, dir := range []string{"work/outer/pkg/.git", "work/outer/bin", "work/inner"} {
				if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			replace(t, s.path("work/outer/pkg/.git/HEAD"), "nonsense\n", 0o644)
			for i, arg := range args {
				if strings.HasPrefix(arg, "work") {
					args[i] = s.path(arg)
				}
			}
			cmd := s.command(append([]string{"run", "--agent", "codex", "--access", "read", "--text", "x"}, args...)...)
			for i, entry := range cmd.Env {
				if path, ok := strings.CutPrefix(entry, "PATH="); ok {
					cmd.Env[i] = "PATH=" + path + ":" + s.path("work/outer/bin")
				}
			}
			out, _ := cmd.CombinedOutput()
			if want := filepath.Join("work/outer/other/.git/config") + ": core.fsmonitor; use --trust-workspace"; !strings.Contains(string(out), want) {
				t.Errorf("no %q:\n%s", want, out)
			}
			environ, err := os.ReadFile(s.path("environ"))
			if err != nil || strings.Contains(string(environ), s.path("work/outer/bin")) || !strings.Contains(string(environ), "core.fsmonitor") {
				t.Errorf("%v: %s", err, environ)
			}
		})
	}
}

// The warning says how git-lfs stays in effect.
func TestLFSOfTheRepository(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "env environ\n")
	for _, dir := range []string{"work/.git/objects", "work/.git/refs"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	replace(t, s.path("work/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
	replace(t, s.path("work/.git/config"), "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n", 0o644)
	for global, hints := range map[string]bool{"": true, "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n": false} {
		replace(t, s.path("home/.gitconfig"), global, 0o644)
		cmd := s.command("run", "--agent", "codex", "--text", "x")
		cmd.Env = append(cmd.Env, "GIT_CONFIG_NOSYSTEM=1") // in which git-lfs can be configured
		out, _ := output(cmd)
		if got := strings.Contains(out, `filter.lfs.clean; use --trust-workspace to let git run them, or configure git-lfs for all repositories ("git lfs install")`); got != hints {
			t.Errorf("with %q: hints %t:\n%s", global, got, out)
		}
	}
}

// What cannot be overridden is refused before anything is written or started.
func TestGitConfigurationThatCannotBeOverridden(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimesWithRuns() {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, rt.Executables[0], "touch ran\n")
			if err := os.MkdirAll(s.path("work/.git"), 0o755); err != nil {
				t.Fatal(err)
			}
			replace(t, s.path("work/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
			replace(t, s.path("work/.git/config"), "[remote \"origin\"]\n\tuploadpack = evil\n", 0o644)
			for _, args := range [][]string{{"run", "--agent", rt.ID, "--text", "x"}, {"session", "start", "--agent", rt.ID}} {
				cmd := s.command(args...)
				out, code := output(cmd)
				for _, want := range []string{s.path("work/.git/config"), "remote.origin.uploadpack", "--trust-workspace"} {
					if !strings.Contains(out, want) && !strings.Contains(out, "cannot hold a session") {
						t.Errorf("%q does not name %s:\n%s", args, want, out)
					}
				}
				if code != 2 {
					t.Errorf("%q: exit code %d, want 2", args, code)
				}
			}
			if list, err := os.ReadDir(s.path("work")); err != nil || len(list) != 1 {
				t.Errorf("%v %v in the workdir, want .git alone", list, err)
			}
		})
	}
}

// runtimesWithRuns returns the runtimes that can run once. Sessions of the others get the
// same variables as those of these.
func runtimesWithRuns() []registry.Runtime {
	return slices.DeleteFunc(registry.Default().All(), func(rt registry.Runtime) bool { return rt.Run.Command == nil })
}
