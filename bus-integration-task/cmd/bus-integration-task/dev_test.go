package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
)

// A site is a folder with a workspace, whose repository dev has one commit, and everything
// that dev keeps.
type site struct {
	t       *testing.T
	dir     string
	environ []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir}
	if err := stubagent.Install(s.path("bin"), "codex"); err != nil {
		t.Fatal(err)
	}
	s.environ = []string{
		"PATH=" + s.path("bin") + ":" + os.Getenv("PATH"), "HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"),
		"GIT_CONFIG_NOSYSTEM=1", "GORACE=atexit_sleep_ms=0", programVariable + "=1",
	}
	for _, folder := range []string{"home", "tmp", "workspace/dev"} {
		if err := os.MkdirAll(s.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.git("init", "-q", "-b", "main")
	s.git("-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "begin")
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = s.path("workspace/dev"), s.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %s", args, out)
	}
	return string(out)
}

// command returns the command dev, which uses the store of the site.
func (s *site) command(more ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"dev", "--store", s.path("store"), "--listen", "127.0.0.1:0",
		"--recipient", "dev", "--workspace-root", s.path("workspace"), "--worktree-root", s.path("trees"),
		"--lease", "3s", "--hand-back", "1ms", "--require-bus-notes=false"}, more...)...)
	cmd.Dir, cmd.Env = s.dir, s.environ
	return cmd
}

// A running is dev while it runs.
type running struct {
	*site
	cmd       *exec.Cmd
	stderr    bytes.Buffer
	addresses []string // of the API and of the board
	task      []string // arguments of task commands
}

func (s *site) start(more ...string) *running {
	s.t.Helper()
	r := &running{site: s, cmd: s.command(more...)}
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // nothing if it has ended
	timer := time.AfterFunc(testwait.Limit, func() { _ = r.cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(stdout)
	for len(r.addresses) < 2 && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "events":
			r.addresses = append(r.addresses, strings.TrimPrefix(value, "http://"))
			r.task = append(r.task, "task", "--events-url", value)
		case "token":
			r.task = append(r.task, "--token-file", value)
		case "board":
			address, _, _ := strings.Cut(strings.TrimPrefix(value, "http://"), "/")
			r.addresses = append(r.addresses, address)
		}
	}
	if len(r.addresses) < 2 {
		_ = r.cmd.Wait()
		s.t.Fatalf("dev did not start: %s", r.stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return r
}

// do runs a task command, which must succeed.
func (r *running) do(stdin string, args ...string) string {
	r.t.Helper()
	code, stdout, stderr := callWith(r.t, stdin, append(r.task[:len(r.task):len(r.task)], args...)...)
	if code != 0 {
		r.t.Fatalf("%q: exit code %d, %s%s\n%s", args, code, stdout, stderr, r.stderr.String())
	}
	return stdout
}

// end sends a signal and checks that nothing is left.
func (r *running) end(with syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(with); err != nil {
		r.t.Fatal(err)
	}
	timer := time.AfterFunc(testwait.Limit, func() { _ = r.cmd.Process.Kill() })
	_ = r.cmd.Wait() // the exit code is checked
	if !timer.Stop() {
		r.t.Fatalf("%v has not ended dev within %v", with, testwait.Limit)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 && with != syscall.SIGKILL {
		r.t.Errorf("%v: exit code %d: %s", with, code, r.stderr.String())
	}
	testwait.Until(r.t, "the end of all processes", func() ([]string, bool) { left := r.processes(); return left, len(left) == 0 })
}

// processes returns the processes of the site, on systems with /proc.
func (s *site) processes() (all []string) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		environ, _ := os.ReadFile(filepath.Join(folder, "environ")) // empty once it has ended
		if filepath.Base(folder) != fmt.Sprint(os.Getpid()) && bytes.Contains(environ, []byte(s.dir)) {
			all = append(all, folder)
		}
	}
	return all
}

// steps is a task that reports when it runs, waits, and is then done.
func (s *site) steps() string {
	return "Add a greeting.\n\nstub: touch " + s.path("running") + "\nstub: await " + s.path("go") +
		"\nstub: write greeting.txt Hello\nstub: run 0 make test\n" +
		`stub: say {"task_complete":true,"status":"done","summary":"add a greeting","changed_files":["greeting.txt"],"plan_closed":false,` +
		`"no_matching_plan_item":true,"no_matching_plan_reason":"there is no PLAN.md","required_checks":[{"command":"make test","result":"pass","reason":""}],"remaining_blockers":[]}` + "\n"
}

func (s *site) awaitRunning() {
	s.t.Helper()
	testwait.Until(s.t, "the agent", func() (error, bool) { err := os.Remove(s.path("running")); return err, err == nil })
}

// Signals end dev with exit code 0 while an agent runs, and leave nothing. The next dev,
// also after SIGKILL, continues with the task. Two of them never share a store.
func TestDev(t *testing.T) {
	s := newSite(t)
	for i, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		r := s.start()
		if i == 0 {
			if out := r.do(s.steps(), "new", "@dev", "-"); out != "created (bus#1.1) -> @dev\n" {
				t.Errorf("%q", out)
			}
			out, err := s.command().CombinedOutput()
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte("another")) {
				t.Errorf("a second dev: %v, %s", err, out)
			}
			r.do("", "list") // the token is still valid
		}
		s.awaitRunning()
		r.end(with)
	}
	if err := os.WriteFile(s.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.start()
	r.do("", "watch", "--timeout", testwait.Limit.String(), "bus#1.1")
	if log := s.git("log", "--format=%s", "--name-only"); strings.Count(log, "greeting.txt") != 1 {
		t.Errorf("the log of the repository is %q", log)
	}
	r.end(syscall.SIGTERM)
	if trees, _ := filepath.Glob(s.path("trees") + "/t-*"); len(trees) > 1 { // that of the killed attempt is retained
		t.Errorf("worktrees are left: %q", trees)
	}
}

// The store has secrets, which neither an agent nor a commit may reach.
func TestStoreIsOutsideOfRepositories(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := os.Symlink(s.path("workspace/dev"), s.path("link")); err != nil {
		t.Fatal(err)
	}
	for store, want := range map[string]string{
		"workspace/dev/store": "is in the Git repository", "link/a/b": "is in the Git repository", "workspace/store": "is in --workspace-root",
	} {
		cmd := s.command()
		cmd.Args[3] = s.path(store)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", store, err, out)
		}
		if _, err := os.Stat(s.path(store)); err == nil {
			t.Errorf("%s was made", store)
		}
	}
}

// dev runs the containers of its worker, here as processes.
func TestDevRunsContainers(t *testing.T) {
	s := newSite(t)
	r := s.start("--agent-backend", "container", "--process-sandbox",
		"--command-json", `["sh","-c","printf 'test:\\n\\ttrue\\n' > Makefile"]`, "--post-command-json", `["make","test"]`)
	r.do("", "new", "@dev", "Add a makefile.")
	r.do("", "watch", "--timeout", testwait.Limit.String(), "bus#1.1")
	if log := s.git("log", "--format=%s", "--name-only"); strings.Count(log, "Makefile") != 1 {
		t.Errorf("the log of the repository is %q", log)
	}
	r.end(syscall.SIGTERM)
}
