package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify/targets"
)

// inRepository lists how PATH can lead to a program that the repository decides.
// The workdir is a folder of the repository.
var inRepository = map[string]struct {
	dir   string            // where the executables are put
	links map[string]string // name and target, made before
	path  string            // the entry of PATH
}{
	"a folder of the repository":           {dir: "repo/node_modules/.bin", path: "repo/node_modules/.bin"},
	"the workdir":                          {dir: "repo/work", path: "repo/work"},
	"a folder of the workdir":              {dir: "repo/work/bin", path: "repo/work/bin"},
	"spelled with dots":                    {dir: "repo/bin", path: "outside/../repo/bin"},
	"an entry that is a link inside":       {dir: "repo/bin", links: map[string]string{"outside/bin": "repo/bin"}, path: "outside/bin"},
	"an entry below a link inside":         {dir: "repo/tools/bin", links: map[string]string{"outside/tools": "repo/tools"}, path: "outside/tools/bin"},
	"a committed link to a folder outside": {dir: "outside/real", links: map[string]string{"repo/bin": "outside/real"}, path: "repo/bin"},
	"a link through the repository":        {dir: "outside/real", links: map[string]string{"repo/bin": "outside/real", "outside/bin": "repo/bin"}, path: "outside/bin"},
}

// hostilePath is a sandbox with a repository, and an entry of PATH through which
// the repository decides what name is.
func hostilePath(t *testing.T, kind string) (s *sandbox, entry string) {
	t.Helper()
	c := inRepository[kind]
	s = newSandbox(t, "codex", "")
	for name, target := range c.links {
		dirs := []string{filepath.Dir(s.path(name))}
		if c.links[target] == "" { // else it is a link itself, made before or after this one
			dirs = append(dirs, s.path(target))
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(s.path(target), s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"repo/.git", "repo/work", "outside"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	replace(t, s.path("repo/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
	for _, rt := range registry.Default().All() {
		for _, name := range rt.Executables {
			if err := link(s.path(c.dir), name); err != nil {
				t.Fatal(err)
			}
			replace(t, filepath.Join(s.path(c.dir), name+".play"), "touch "+s.path("ran")+"\nout 1.2.3\n", 0o644)
		}
	}
	return s, s.dir + "/" + c.path // not cleaned
}

// Nothing starts an executable that the repository decides, whatever the runtime
// and whatever the command.
func TestHostileExecutableInTheRepositoryIsNotStarted(t *testing.T) {
	t.Parallel()
	for kind := range inRepository {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, entry := hostilePath(t, kind)
			calls := [][]string{{"detect", "-v"}, {"doctor"}, {"run", "--text", "x"}, {"runtime", "list"}}
			for _, rt := range registry.Default().All() {
				if kind != "a folder of the repository" && rt.ID != "codex" {
					continue // all are looked up in one way
				}
				calls = append(calls, []string{"run", "--agent", rt.ID, "--text", "x"}, []string{"run", "--agent", rt.ID, "--dry-run", "--text", "x"},
					[]string{"doctor", rt.ID})
				if rt.Session != nil {
					calls = append(calls, []string{"session", "start", "--agent", rt.ID})
				}
			}
			for _, args := range calls {
				cmd := s.command(args...)
				cmd.Dir = s.path("repo/work")
				cmd.Env = append(cmd.Env, "PATH="+entry)
				out, code := output(cmd)
				if fails := args[0] == "run" || args[0] == "session" || len(args) == 2 && args[0] == "doctor" && args[1] != "-v"; fails && code == 0 {
					t.Errorf("%q succeeds:\n%s", args, out)
				}
				if want := filepath.Clean(entry) + "/"; !strings.Contains(out, want) || !strings.Contains(out, "inside the repository") {
					t.Errorf("%q does not name the file below %s:\n%s", args, want, out)
				}
			}
			if _, err := os.Lstat(s.path("ran")); err == nil {
				t.Error("the executable was started")
			}
		})
	}
}

// The CLI to verify, and git, are those outside the repository.
func TestVerifyDoesNotStartWhatTheRepositoryDecides(t *testing.T) {
	t.Parallel()
	s, entry := hostilePath(t, "a folder of the repository")
	if err := link(entry, "git"); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(entry, "git.play"), "touch "+s.path("ran")+"\n", 0o644)
	for _, target := range targets.All() {
		cmd := s.command("verify", target.Runtime, "--check", "prompt-dash")
		cmd.Dir = s.path("repo/work")
		cmd.Env = append(cmd.Env, "PATH="+entry)
		if out, code := output(cmd); code == 0 || !strings.Contains(out, " in PATH; see ") {
			t.Errorf("%s was found:\n%s", target.Runtime, out)
		}
	}
	if _, err := os.Lstat(s.path("ran")); err == nil {
		t.Error("the executable was started")
	}
}

// An executable outside that is a link into the repository is refused as well.
func TestExecutableLinkedIntoTheRepositoryIsNotStarted(t *testing.T) {
	t.Parallel()
	s, _ := hostilePath(t, "a folder of the repository")
	if err := os.Symlink(s.path("repo/node_modules/.bin/codex"), s.path("outside/codex")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "--agent", "codex", "--text", "x"}, {"doctor", "codex"}} {
		cmd := s.command(args...)
		cmd.Dir = s.path("repo/work")
		cmd.Env = append(cmd.Env, "PATH="+s.path("outside"))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), s.path("outside/codex")) {
			t.Errorf("%q = %v:\n%s", args, err, out)
		}
	}
	if _, err := os.Lstat(s.path("ran")); err == nil {
		t.Error("the executable was started")
	}
}

func TestTrustStartsAnExecutableInTheRepository(t *testing.T) {
	t.Parallel()
	s, entry := hostilePath(t, "a folder of the repository")
	cmd := s.command("run", "--agent", "codex", "--trust-workspace", "--text", "x")
	cmd.Dir = s.path("repo/work")
	cmd.Env = append(cmd.Env, "PATH="+entry)
	out, _ := cmd.CombinedOutput()
	if _, err := os.Lstat(s.path("ran")); err != nil {
		t.Errorf("the executable was not started:\n%s", out)
	}
}

// The agent looks programs up by the same rule: what is left of PATH is absolute
// and outside the repository, from any source, and every entry left out is named.
func TestAgentsPathIsClean(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimesWithRuns() {
		for name, c := range map[string]struct {
			flags   []string
			trusted bool
		}{
			"inherited": {}, "by --env": {flags: []string{"--env", "PATH"}}, "trusted": {flags: []string{"--trust-workspace"}, trusted: true},
		} {
			t.Run(rt.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSandbox(t, rt.Executables[0], "")
				replace(t, s.path("bin/"+rt.Executables[0]+".play"), "env "+s.path("environ")+"\n", 0o644)
				for _, dir := range []string{"work/.git", "work/bin", "outside"} {
					if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				replace(t, s.path("work/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
				if err := os.Symlink(s.path("work/bin"), s.path("outside/linked")); err != nil {
					t.Fatal(err)
				}
				inside := []string{s.path("work/bin"), s.path("work/not/there"), s.path("outside/linked")}
				outside := []string{s.path("bin"), s.path("outside"), s.path("not/there")}
				path := strings.Join(slices.Concat([]string{".", "rel"}, inside, outside, []string{""}), ":")
				args := append([]string{"run", "--agent", rt.ID, "--text", "x"}, c.flags...)
				if i := slices.Index(args, "PATH"); i >= 0 {
					args[i] += "=" + path
				}
				cmd := s.command(args...)
				if name != "by --env" {
					cmd.Env = append(cmd.Env, "PATH="+path)
				}
				out, _ := output(cmd)
				environ, err := os.ReadFile(s.path("environ"))
				if err != nil {
					t.Fatalf("%v:\n%s", err, out)
				}
				want, left := outside, append([]string{`".", "rel", ""`}, inside...)
				if c.trusted {
					want, left = slices.Concat(inside, outside), left[:1]
				}
				if !slices.Contains(strings.Split(string(environ), "\n"), "PATH="+strings.Join(want, ":")) {
					t.Errorf("the agent's PATH is not %q:\n%s", want, environ)
				}
				for _, entry := range left {
					if !strings.Contains(out, entry) {
						t.Errorf("nothing names %s:\n%s", entry, out)
					}
				}
			})
		}
	}
}
