package runner_test

import (
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

// A program runs the libraries that it loads, so the rule for PATH also applies to the
// search paths of libraries.
func TestCleanPathOfLibraries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	for name, c := range map[string]struct {
		entry, want string
		trusted     bool
	}{
		"outside":             {entry: "LD_LIBRARY_PATH=/opt/a:/opt/b", want: "LD_LIBRARY_PATH=/opt/a:/opt/b"},
		"an empty entry":      {entry: "LD_LIBRARY_PATH=/opt/a:", want: "LD_LIBRARY_PATH=/opt/a"},
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
			if err := os.MkdirAll(repo, 0o755); err != nil {
				t.Fatal(err)
			}
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
