package instructions_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
)

// tempDir returns an empty directory without symlinks in its path.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes files below dir; a name that ends in a slash is a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		parent := file
		if !strings.HasSuffix(name, "/") {
			parent = filepath.Dir(file)
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if parent == file {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func discover(t testing.TB, workdir string) instructions.Chain {
	t.Helper()
	chain, err := instructions.Discover(workdir)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func rels(chain instructions.Chain) []string {
	var names []string
	for _, f := range chain.Files {
		names = append(names, f.Rel)
	}
	return names
}

func TestFindRoot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"repository":               {map[string]string{".git/HEAD": "ref"}, "."},
		"worktree":                 {map[string]string{".git": "gitdir: /elsewhere"}, "."},
		"nearest wins":             {map[string]string{".git/HEAD": "ref", "sub/.git": "gitdir: x"}, "sub"},
		"empty .git is stale":      {map[string]string{".git/HEAD": "ref", "sub/deep/.git/": ""}, "."},
		"other .git file":          {map[string]string{".git": "something", "sub/.git": "gitdi"}, "sub/deep"},
		"no repository":            {nil, "sub/deep"},
		"the workdir is the root":  {map[string]string{"sub/deep/.git/HEAD": "ref"}, "sub/deep"},
		"a root below the workdir": {map[string]string{"sub/deep/x/.git/HEAD": "ref"}, "sub/deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, map[string]string{"sub/deep/": ""})
			write(t, dir, test.files)
			if got, want := instructions.FindRoot(filepath.Join(dir, "sub/deep")), filepath.Join(dir, test.want); got != want {
				t.Errorf("FindRoot = %s, want %s", got, want)
			}
		})
	}
}

func TestFindRootIsNotHeldUpByAFIFO(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	if err := syscall.Mkfifo(filepath.Join(dir, ".git"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := instructions.FindRoot(dir); got != dir {
		t.Errorf("FindRoot = %s, want %s", got, dir)
	}
}

func TestFindRootOfAMissingWorkdir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "a", "..", "missing")
	if got, want := instructions.FindRoot(dir), filepath.Clean(dir); got != want {
		t.Errorf("FindRoot = %s, want %s", got, want)
	}
}

func TestDiscoverLayers(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{
		"AGENTS.md": "above", "repo/.git/HEAD": "ref", "repo/AGENTS.md": "root", "repo/a/b/AGENTS.md": "deep",
		"repo/a/b/c/AGENTS.md": "below", "repo/other/AGENTS.md": "other",
	})
	workdir := filepath.Join(dir, "repo/a/b")
	want := instructions.Chain{
		Root: filepath.Join(dir, "repo"), Workdir: workdir,
		Files: []instructions.File{
			{Path: filepath.Join(dir, "repo/AGENTS.md"), Rel: "AGENTS.md", Size: 4},
			{Path: filepath.Join(dir, "repo/a/b/AGENTS.md"), Rel: "a/b/AGENTS.md", Size: 4},
		},
	}
	got := discover(t, workdir)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Size() != 8 {
		t.Errorf("Size = %d, want 8", got.Size())
	}
	dirs := []string{filepath.Join(dir, "repo"), filepath.Join(dir, "repo/a"), workdir}
	if diff := cmp.Diff(dirs, got.Dirs()); diff != "" {
		t.Error(diff)
	}
}

func TestDiscoverResolvesTheWorkdir(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"real/.git/HEAD": "ref", "real/AGENTS.md": "root", "real/sub/": ""})
	if err := os.Symlink("real/sub", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	chain := discover(t, filepath.Join(dir, "link"))
	if chain.Root != filepath.Join(dir, "real") || chain.Workdir != filepath.Join(dir, "real/sub") || len(chain.Files) != 1 {
		t.Errorf("chain = %+v, want the one of the directory the link leads to", chain)
	}
}

func TestDiscoverSkipsOtherThanRegularFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(file string) error
		want string // in the warning; "" when the file is used
	}{
		"directory":      {func(f string) error { return os.Mkdir(f, 0o755) }, "not a regular file"},
		"FIFO":           {func(f string) error { return syscall.Mkfifo(f, 0o644) }, "not a regular file"},
		"link inside":    {func(f string) error { return os.Symlink("../shared.md", f) }, ""},
		"link outside":   {func(f string) error { return os.Symlink("../../outside.md", f) }, "escapes"},
		"absolute link":  {func(f string) error { return os.Symlink("/etc/hostname", f) }, "escapes"},
		"link to device": {func(f string) error { return os.Symlink("/dev/zero", f) }, "escapes"},
		"dangling link":  {func(f string) error { return os.Symlink("nothing", f) }, "no such file"},
		"loop":           {func(f string) error { return os.Symlink("AGENTS.md", f) }, "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, map[string]string{
				"outside.md": "no", "repo/.git/HEAD": "ref", "repo/AGENTS.md": "root", "repo/shared.md": "shared", "repo/sub/": "",
			})
			if err := test.make(filepath.Join(dir, "repo/sub/AGENTS.md")); err != nil {
				t.Fatal(err)
			}
			chain := discover(t, filepath.Join(dir, "repo/sub"))
			if test.want == "" {
				if diff := cmp.Diff([]string{"AGENTS.md", "sub/AGENTS.md"}, rels(chain)); diff != "" || chain.Warnings != nil {
					t.Errorf("%s warnings %q", diff, chain.Warnings)
				}
				return
			}
			if diff := cmp.Diff([]string{"AGENTS.md"}, rels(chain)); diff != "" {
				t.Error(diff)
			}
			if len(chain.Warnings) != 1 || !strings.HasPrefix(chain.Warnings[0], "sub/AGENTS.md was left out: ") ||
				!strings.Contains(chain.Warnings[0], test.want) {
				t.Errorf("warnings = %q, want one with %q", chain.Warnings, test.want)
			}
		})
	}
}

func TestDiscoverNeedsADirectory(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"file": ""})
	for _, name := range []string{"file", "missing"} {
		if _, err := instructions.Discover(filepath.Join(dir, name)); err == nil {
			t.Errorf("Discover(%s) succeeded", name)
		}
	}
}
