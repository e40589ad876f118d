package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	result, err := b.Run(t.Context(), req)
	if got := string(result.Stdout.Bytes()); err != nil || !strings.Contains(got, "PATH=/usr/bin true") {
		t.Errorf("%v: %s", err, got)
	}
}
