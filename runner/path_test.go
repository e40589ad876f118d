package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

func TestCleanPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, outside := filepath.Join(dir, "repo"), filepath.Join(dir, "outside")
	for _, name := range []string{filepath.Join(repo, ".git"), filepath.Join(repo, "work"), filepath.Join(repo, "bin"), outside} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, ".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, home, workdir string
		trusted             bool
		want                string
	}{
		"outside":               {path: outside + ":" + outside, want: outside + ":" + outside},
		"relative":              {path: ".:" + outside + "::bin", want: outside},
		"relative, trusted":     {path: ".:" + outside + "::bin", trusted: true, want: outside},
		"in the repository":     {path: repo + "/bin:" + outside, want: outside},
		"in the workdir":        {path: repo + "/work:" + outside, want: outside},
		"the repository":        {path: repo + ":" + outside, want: outside},
		"not there yet":         {path: repo + "/later:" + outside, want: outside},
		"trusted":               {path: repo + "/bin:" + outside, trusted: true, want: repo + "/bin:" + outside},
		"a name that begins so": {path: repo + "-bin:" + outside, want: repo + "-bin:" + outside},
		"nothing is left":       {path: ".:" + repo, want: "/usr/bin:/bin"},
		"empty":                 {path: "", want: "/usr/bin:/bin"},
		"at home":               {path: repo + "/bin:" + repo + "/work/bin", home: repo, want: repo + "/bin"},
		"in the root":           {path: outside, workdir: "/", want: outside},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workdir := c.workdir
			if workdir == "" {
				workdir = filepath.Join(repo, "work")
			}
			got := runner.CleanPath([]string{"PATH=/first", "HOME=" + c.home, "PATH=" + c.path}, workdir, c.trusted)
			if !slices.Equal(got, []string{"PATH=" + c.want, "HOME=" + c.home}) {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// The repository around another one decides nothing either: git uses it where it refuses
// the inner one. A linked worktree has the content of its main one.
func TestCleanPathOfNestedRepositories(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"outer/.git/HEAD": "ref: refs/heads/main\n", "outer/pkg/.git/HEAD": "nonsense", "outer/bin/x": "", "outer/pkg/bin/x": "", "other/bin/x": "",
		"main/.git/HEAD": "ref: refs/heads/main\n", "main/.git/refs/x": "", "main/.git/objects/x": "", "main/.git/worktrees/w/commondir": "../..\n", "main/bin/x": "",
		"linked/.git": "gitdir: " + dir + "/main/.git/worktrees/w\n", "linked/sub/x": "",
		"linked/nested/.git/HEAD": "ref: refs/heads/main\n", "linked/nested/sub/x": "",
		"empty/.git/x": "", "empty/bin/x": "", "empty/sub/x": "",
		"bare/HEAD": "ref: refs/heads/main\n", "bare/refs/x": "", "bare/objects/x": "", "bare/bin/x": "", "bare/sub/x": "",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		workdir, home, in string
		left              bool
	}{
		"around a nested one":      {workdir: "outer/pkg", in: "outer/bin", left: true},
		"the nested one":           {workdir: "outer/pkg", in: "outer/pkg/bin", left: true},
		"another one":              {workdir: "outer/pkg", in: "other/bin"},
		"of the user's home":       {workdir: "outer/pkg", home: "outer", in: "outer/bin"},
		"around a linked worktree": {workdir: "linked/sub", in: "main/bin", left: true},
		"nested in a linked one":   {workdir: "linked/nested/sub", in: "main/bin", left: true},
		"main worktree":            {workdir: "main", in: "main/bin", left: true},
		"an empty .git":            {workdir: "empty/sub", in: "empty/bin"},
		"around a bare one":        {workdir: "bare/sub", in: "bare/bin", left: true},
	} {
		environ := []string{"PATH=" + filepath.Join(dir, c.in) + ":/usr/bin", "HOME=" + filepath.Join(dir, c.home, "")}
		if c.home == "" {
			environ[1] = "HOME=/nonexistent"
		}
		got := runner.CleanPath(environ, filepath.Join(dir, c.workdir), false)
		if left := strings.HasPrefix(got[0], "PATH=/usr/bin"); left != c.left {
			t.Errorf("%s: %q", name, got[0])
		}
	}
}

func TestCleanPathOfAddedDirectories(t *testing.T) {
	t.Parallel()
	added := t.TempDir()
	environ := []string{"PATH=" + filepath.Join(added, "bin") + ":/usr/bin"}
	if got := runner.CleanPath(environ, t.TempDir(), false, t.TempDir(), added); got[0] != "PATH=/usr/bin" {
		t.Errorf("%q", got)
	}
}

func TestPathOfARequestIsClean(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("env PATH", "say ok:")
	req.Env = append(req.Env, "PATH=.:"+req.Workdir+":/usr/bin")
	result, err := b.Run(t.Context(), req, agent.Output{})
	if got := string(result.Stdout.Bytes()); err != nil || !strings.Contains(got, "PATH=/usr/bin true") {
		t.Errorf("%v: %s", err, got)
	}
}

// The executable of the runtime is not one of an added directory.
func TestExecutableInAnAddedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say ok:")
	path, _ := agent.LookupEnv(b.Environ, "PATH")
	dir, _, _ := strings.Cut(path, ":")
	req.AddDirs = []string{dir}
	for trusted, refused := range map[bool]bool{false: true, true: false} {
		req.TrustWorkspace = trusted
		_, err := b.Run(t.Context(), req, agent.Output{})
		if is := err != nil && strings.Contains(err.Error(), "was not started"); is != refused {
			t.Errorf("trusted %t: %v", trusted, err)
		}
	}
}

// A program runs the libraries that it loads, so the rule for PATH also applies to the
// search paths of libraries.
func TestCleanPathOfLibraries(t *testing.T) {
	t.Parallel()
	repo, err := os.MkdirTemp("/tmp", "repo") // TMPDIR can have a space, which separates entries of LD_PRELOAD
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(repo) })
	for name, c := range map[string]struct {
		entry, want string
		trusted     bool
	}{
		"outside":             {entry: "LD_LIBRARY_PATH=/opt/a:/opt/b", want: "LD_LIBRARY_PATH=/opt/a:/opt/b"},
		"an empty entry":      {entry: "LD_LIBRARY_PATH=/opt/a:", want: "LD_LIBRARY_PATH=/opt/a"},
		"a semicolon":         {entry: "LD_LIBRARY_PATH=/opt/a;", want: "LD_LIBRARY_PATH=/opt/a"},
		"semicolons":          {entry: "LD_LIBRARY_PATH=/opt/a;" + repo + "/lib;.;/opt/b", want: "LD_LIBRARY_PATH=/opt/a:/opt/b"},
		"a line break":        {entry: "LD_LIBRARY_PATH=/opt/a\n" + repo + "/lib", want: "LD_LIBRARY_PATH=/opt/a"},
		"empty entries":       {entry: "LD_LIBRARY_PATH=:"},
		"empty":               {entry: "LD_LIBRARY_PATH=", want: "LD_LIBRARY_PATH="},
		"relative":            {entry: "LD_LIBRARY_PATH=lib:/opt/a", trusted: true, want: "LD_LIBRARY_PATH=/opt/a"},
		"in the repository":   {entry: "LD_LIBRARY_PATH=" + repo + "/lib:/opt/a", want: "LD_LIBRARY_PATH=/opt/a"},
		"trusted":             {entry: "LD_LIBRARY_PATH=" + repo + "/lib", trusted: true, want: "LD_LIBRARY_PATH=" + repo + "/lib"},
		"a preload":           {entry: "LD_PRELOAD=libx.so " + repo + "/evil.so ./evil.so", want: "LD_PRELOAD=libx.so"},
		"a preload of theirs": {entry: "LD_PRELOAD=/usr/lib/libjemalloc.so libx.so", want: "LD_PRELOAD=/usr/lib/libjemalloc.so libx.so"},
		"a token":             {entry: "LD_LIBRARY_PATH=$ORIGIN/lib:/opt/a", want: "LD_LIBRARY_PATH=$ORIGIN/lib:/opt/a"},
		"another token":       {entry: "LD_LIBRARY_PATH=$LIB/x:/opt/a", want: "LD_LIBRARY_PATH=/opt/a"},
		"modules":             {entry: "NODE_PATH=" + repo + "/node_modules"},
		"converters":          {entry: "GCONV_PATH=."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := []string{"PATH=/usr/bin"}
			if c.want != "" {
				want = append(want, c.want)
			}
			if got := runner.CleanPath([]string{"PATH=/usr/bin", c.entry}, repo, c.trusted); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
