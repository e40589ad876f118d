package worktree

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A bench is a workspace with a primary checkout, made with plain git.
type bench struct {
	t         testing.TB
	dir       string // everything
	workspace string
	primary   string
	root      string // of worktrees
	state     string
	home      string
}

// newBench makes a primary checkout at the path module of a workspace, with one commit.
func newBench(t testing.TB, module string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, workspace: filepath.Join(dir, "workspace"), root: filepath.Join(dir, "worktrees"), state: filepath.Join(dir, "state"), home: filepath.Join(dir, "home")}
	b.primary = filepath.Join(b.workspace, module)
	for _, name := range []string{b.primary, b.home} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.git(b.primary, "init", "-q", "-b", "main")
	b.write(b.primary, "README", "one\n")
	b.git(b.primary, "add", ".")
	b.git(b.primary, "commit", "-qm", "begin")
	return b
}

// environ is an environment for plain git, with the configuration of repositories.
func (b *bench) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@example.invalid", "GIT_COMMITTER_NAME=user", "GIT_COMMITTER_EMAIL=user@example.invalid",
	}
}

// tryGit runs plain git in dir.
func (b *bench) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, b.environ()
	var out, message bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &message
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.Join(args, " ") + ": " + message.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// git is tryGit, and must succeed.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	out, err := b.tryGit(dir, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) write(dir, name, text string) {
	b.t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	// A process that another test forks meanwhile would have the file open for writing
	// until it calls exec, so that it could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

func (b *bench) open() *Repository { return b.openWith(Config{}) }

// openWith is open with a configuration for all but the folders.
func (b *bench) openWith(c Config) *Repository {
	b.t.Helper()
	c.Workspace, c.State = b.workspace, b.state
	r, err := Open(b.t.Context(), b.primary, c)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) add(r *Repository, o Options) *Worktree {
	b.t.Helper()
	o.Root = b.root
	w, err := r.Add(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { w.Close() })
	return w
}

func (b *bench) commit(w *Worktree) string {
	b.t.Helper()
	commit, err := w.Commit(b.t.Context(), "", "work", Identity{"agent", "agent@example.invalid"})
	if err != nil {
		b.t.Fatal(err)
	}
	return commit
}

// clean checks that plain git sees no trace of worktrees and no damage.
func (b *bench) clean() {
	b.t.Helper()
	if list := b.git(b.primary, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		b.t.Errorf("worktrees are left:\n%s", list)
	}
	if branches := b.git(b.primary, "branch", "--format=%(refname:short)"); branches != "main" {
		b.t.Errorf("branches are left: %q", branches)
	}
	if status := b.git(b.primary, "status", "--porcelain"); status != "" {
		b.t.Errorf("the primary is not clean:\n%s", status)
	}
	if out, err := b.tryGit(b.primary, "fsck", "--strict", "--no-dangling"); err != nil {
		b.t.Errorf("fsck: %s %v", out, err)
	}
	for _, dir := range []string{b.root, b.state} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) || len(entries) > 0 {
			b.t.Errorf("%s is not empty: %v, %v", dir, entries, err)
		}
	}
	for _, name := range []string{"index.lock", journalName, "bus-task-index", "bus-task-index.lock"} {
		if exists(filepath.Join(b.primary, ".git", name)) {
			b.t.Errorf("%s is left", name)
		}
	}
}
