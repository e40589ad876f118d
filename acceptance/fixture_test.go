//go:build acceptance

package acceptance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// runLimit is the maximum duration of one run of bus-agent.
const runLimit = 2 * time.Minute

// A fixture is the environment of one test: a home, a temporary folder, a repository
// and a model server. It uses nothing from the user's home and environment.
type fixture struct {
	t     *testing.T
	home  string
	tmp   string
	repo  string // a git repository with one commit
	model *modeltest.Server
	env   []string // added to the environment of bus-agent
	noGit bool     // the repository is a plain folder

	// agent and modelID are the runtime and the model of run.
	agent, modelID string
	// keptInHome are the names in the home that the CLI may change.
	keptInHome []string
	// mayAdd are the files in the workdir that a run may add or change.
	mayAdd []string
	// promptSuffix and answerSuffix are added by the CLI to each prompt and answer.
	promptSuffix, answerSuffix string
	// limit is the maximum duration of one run of bus-agent.
	limit time.Duration
	// program is the bus-agent to run; empty for the default build.
	program string
	// path is a further folder of PATH.
	path string
}

// newCodex returns a fixture for Codex, whose repository contains files, as path and
// content. The fixtures of the other CLIs are based on it.
func newCodex(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	model, err := modeltest.Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	// On macOS the temporary folder is behind a link; agents report the real path.
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{
		t:     t,
		home:  filepath.Join(root, "home"),
		tmp:   filepath.Join(root, "tmp"),
		repo:  filepath.Join(root, "repo"),
		model: model,

		agent:   "codex",
		modelID: "gpt-5.5",
		limit:   runLimit,
	}
	for _, dir := range []string{w.home, w.tmp, w.repo} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFiles(t, w.repo, files)
	w.git("init", "-q")
	w.commit("start")
	return w
}

func writeFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// removeGit makes the repository a plain folder.
func (w *fixture) removeGit() {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.repo, ".git")); err != nil {
		w.t.Fatal(err)
	}
	w.noGit = true
}

func (w *fixture) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(git, args...)
	cmd.Dir = w.repo
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.tmp, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// commit commits all files of the repository, ignored ones included.
func (w *fixture) commit(message string) {
	w.t.Helper()
	w.git("add", "-A", "-f")
	w.git("-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", message)
}

// environ returns the environment of bus-agent.
func (w *fixture) environ() []string {
	var path []string
	for _, program := range []string{codex, claude, gemini, qwen, node, git} {
		path = append(path, filepath.Dir(program))
	}
	path = append(path, "/usr/bin", "/bin")
	if w.path != "" {
		path = append(path, w.path)
	}
	return append([]string{
		"PATH=" + strings.Join(path, string(os.PathListSeparator)),
		"HOME=" + w.home,
		"TMPDIR=" + w.tmp,
		"LC_ALL=C.UTF-8",
		"FAKE_API_KEY=sk-acceptance",
	}, w.env...)
}

// A report is the output of --format json.
type report struct {
	Text      string
	Runtime   string
	Model     string
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	Usage     *agent.Usage
	ExitCode  int `json:"exit_code"`
	Kind      string
	Error     string
	Stderr    string
	Repeated  bool
	Warnings  []string
}

// An outcome is the result of one run of bus-agent.
type outcome struct {
	stdout, stderr string
	code           int
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d after %v\nstdout:\n%s\nstderr:\n%s", o.code, o.took, clip(o.stdout), clip(o.stderr))
}

func clip(s string) string {
	const limit = 4000
	if len(s) <= limit {
		return s
	}
	return s[:limit/2] + "\n[...]\n" + s[len(s)-limit/2:]
}

// codexArgs returns the arguments that make Codex use the scripted model, with a key.
// Other CLIs are configured by their environment.
func (w *fixture) codexArgs() []string {
	if w.agent != "codex" {
		return nil
	}
	return []string{
		"--", "-c", "model_provider=fake",
		"-c", fmt.Sprintf(`model_providers.fake={name="fake",base_url=%q,wire_api="responses",env_key="FAKE_API_KEY"}`, w.model.OpenAIURL()),
	}
}

func (w *fixture) busAgent() string {
	if w.program != "" {
		return w.program
	}
	return busAgent
}

// start starts bus-agent in the repository.
func (w *fixture) start(ctx context.Context, stdin string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	w.t.Helper()
	cmd := exec.CommandContext(ctx, w.busAgent(), args...)
	cmd.Dir = w.repo
	cmd.Env = w.environ()
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, &stdout, &stderr
}

// exec runs bus-agent with args and checks that it leaves nothing behind.
func (w *fixture) exec(stdin string, args ...string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.limit)
	defer cancel()
	before := w.snapshot()
	begun := time.Now()
	cmd, stdout, stderr := w.start(ctx, stdin, args...)
	err := cmd.Wait()
	o := outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(begun)}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%v\n%v", err, o)
	}
	w.checkNothingLeft(before)
	return o
}

// run runs the command run with args and the prompt on standard input, and returns its
// report.
func (w *fixture) run(prompt string, args ...string) (report, outcome) {
	w.t.Helper()
	return w.runWith(prompt, w.codexArgs(), args...)
}

// runWith is run with cliArgs instead of codexArgs.
func (w *fixture) runWith(prompt string, cliArgs []string, args ...string) (report, outcome) {
	w.t.Helper()
	all := append([]string{"run", "--format", "json", "--prompt", "-"}, args...)
	if !slices.Contains(args, "--agent") {
		all = append(all, "--agent", w.agent, "--model", w.modelID)
	}
	o := w.exec(prompt, append(all, cliArgs...)...)
	var r report
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		w.t.Fatalf("standard output is not a report: %v\n%v", err, o)
	}
	return r, o
}

// wantAnswer fails the test unless the run succeeded with the answer text.
func (w *fixture) wantAnswer(text string, r report, o outcome) {
	w.t.Helper()
	if o.code != 0 || r.Kind != "" || r.Text != text+w.answerSuffix {
		w.t.Fatalf("want the answer %q, got %+v\n%v", text, r, o)
	}
}

// wantRequests returns the requests to the model and fails the test unless there are n.
func (w *fixture) wantRequests(n int) []*modeltest.Request {
	w.t.Helper()
	got := w.model.ModelRequests()
	if len(got) != n {
		w.t.Fatalf("the model got %d requests, want %d", len(got), n)
	}
	return got
}

// A snapshot is the state that a run must not change.
type snapshot struct {
	home   map[string]string
	status string
}

func (w *fixture) snapshot() snapshot {
	w.t.Helper()
	home := listFiles(w.t, w.home)
	maps.DeleteFunc(home, func(path, _ string) bool {
		first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		return slices.Contains(w.keptInHome, first) || path == "." && len(w.keptInHome) > 0
	})
	return snapshot{home: home, status: w.status()}
}

// status returns the output of git status, without the files in mayAdd.
func (w *fixture) status() string {
	w.t.Helper()
	if w.noGit {
		return ""
	}
	var kept strings.Builder
	for line := range strings.Lines(w.git("status", "--porcelain", "--untracked-files=all")) {
		added := func(name string) bool {
			return strings.HasSuffix("/"+strings.TrimSpace(line[3:]), "/"+name)
		}
		if !slices.ContainsFunc(w.mayAdd, added) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// listFiles returns the paths below root with their mode and content.
func listFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + target
		}
		rel, err := filepath.Rel(root, path)
		found[rel] = what
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkNothingLeft fails the test if a run left files or processes behind.
func (w *fixture) checkNothingLeft(before snapshot) {
	w.t.Helper()
	after := w.snapshot()
	if diff := cmp.Diff(before.home, after.home); diff != "" {
		w.t.Errorf("the run changed the home (-before +after):\n%s", diff)
	}
	if after.status != before.status {
		w.t.Errorf("git status before the run:\n%safter it:\n%s", before.status, after.status)
	}
	for path := range listFiles(w.t, w.tmp) {
		if path != "." {
			w.t.Errorf("the run left %s in the temporary folder", path)
		}
	}
	w.checkRepository()
	w.checkProcesses()
}

// checkRepository fails the test if a run left files of the CLI or bus-agent in the
// repository, except for sessions, which have a .gitignore.
func (w *fixture) checkRepository() {
	w.t.Helper()
	for path := range listFiles(w.t, w.repo) {
		slash := filepath.ToSlash(path)
		_, below, isBus := strings.Cut("/"+slash, "/."+w.agent+"/bus/")
		kept := below == ".gitignore" || below == ".lock" || below == "sessions" || strings.HasPrefix(below, "sessions/")
		if isBus && !kept && !w.tracked(slash) {
			w.t.Errorf("the run left %s", slash)
		}
		switch filepath.Base(slash) {
		case ".agents", ".aws":
			if !w.tracked(slash) {
				w.t.Errorf("the run left %s", slash)
			}
		case ".git":
			if slash != ".git" {
				w.t.Errorf("the run left %s", slash)
			}
		}
	}
}

func (w *fixture) tracked(path string) bool {
	w.t.Helper()
	return !w.noGit && w.git("ls-files", "--", path) != ""
}

// checkProcesses fails the test if a process of the fixture is running. It finds them
// by the home in their environment, on Linux only.
func (w *fixture) checkProcesses() {
	w.t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	for _, line := range w.processes() {
		w.t.Errorf("a process is still running: %s", line)
	}
}

// interrupt sends SIGINT, as Ctrl-C does.
func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}
