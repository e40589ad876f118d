package instructions_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const parent = ".codex/bus"

func open(t testing.TB, workdir string, dryRun bool) *instructions.Workspace {
	t.Helper()
	w, err := instructions.Open(discover(t, workdir), dryRun)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func newHome(t testing.TB, w *instructions.Workspace) *instructions.Home {
	t.Helper()
	h, err := w.NewHome(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Remove() })
	return h
}

// must fails the test with the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot returns the mode and content of everything below dir.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	must(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			content = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(file); err != nil {
				return err
			}
		}
		rel, err := filepath.Rel(dir, file)
		tree[filepath.ToSlash(rel)] = info.Mode().String() + " " + content
		return err
	}))
	return tree
}

// content is a snapshot of a home without its claim.
func content(t testing.TB, h *instructions.Home) map[string]string {
	t.Helper()
	tree := snapshot(t, h.Path())
	if !strings.HasPrefix(tree[claimName], "-rw------- ") {
		t.Errorf("the home does not say whose it is: %q", tree[claimName])
	}
	delete(tree, claimName)
	return tree
}

// claimName is the file that names the owner of a folder.
const claimName = ".bus-agent-owner"

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func TestHomeIsPrivateAndFresh(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	a, b := newHome(t, w), newHome(t, w)
	for _, h := range []*instructions.Home{a, b} {
		rel, err := filepath.Rel(dir, h.Path())
		must(t, err)
		if !regexp.MustCompile(`^\.codex/bus/[0-9a-f]{16}$`).MatchString(filepath.ToSlash(rel)) {
			t.Errorf("path = %s", rel)
		}
		info, err := os.Lstat(h.Path())
		must(t, err)
		if info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("mode = %v, want drwx------", info.Mode())
		}
		if tree := content(t, h); len(tree) != 0 {
			t.Errorf("a fresh home holds %v", tree)
		}
	}
	if a.Path() == b.Path() {
		t.Error("two homes have one path")
	}
	ignore, err := os.ReadFile(filepath.Join(dir, parent, ".gitignore"))
	if err != nil || !strings.HasSuffix(string(ignore), "\n*\n") {
		t.Errorf(".gitignore = %q, %v, want a line with *", ignore, err)
	}
}

// Equal runs, one after another, have equal paths. A run never uses a folder that already
// exists.
func TestHomesHaveStableNames(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	path := func() string {
		h := newHome(t, w)
		if len(content(t, h)) != 0 {
			t.Errorf("%s holds %v", h.Path(), content(t, h))
		}
		must(t, h.Remove())
		return h.Path()
	}
	first := path()
	if again := path(); again != first {
		t.Errorf("homes one after another: %s, %s", first, again)
	}
	other := newHome(t, w)
	if at := path(); at == first {
		t.Error("two live homes have one path")
	}
	must(t, other.Remove())
	for name, plant := range map[string]func() error{
		"folder":        func() error { return os.MkdirAll(first, 0o700) },
		"file":          func() error { return os.WriteFile(first, nil, 0o600) },
		"link":          func() error { return os.Symlink(tempDir(t), first) },
		"dangling link": func() error { return os.Symlink("nowhere", first) },
	} {
		must(t, os.MkdirAll(filepath.Dir(first), 0o755), plant())
		if at := path(); at == first {
			t.Errorf("a home in the place of a planted %s", name)
		}
		if !exists(first) {
			t.Errorf("the planted %s was removed", name)
		}
		must(t, os.Remove(first))
	}
	for n := range 120 {
		must(t, os.MkdirAll(filepath.Join(filepath.Dir(first), fmt.Sprintf("%016x", n)), 0o700))
	}
	path()
}

// The home of a workdir that cannot be written has a stable path too, in a folder that
// is always new: others can write next to it.
func TestTemporaryHomesHaveStableNames(t *testing.T) {
	t.Parallel()
	dir, temp := tempDir(t), tempDir(t)
	must(t, os.WriteFile(filepath.Join(dir, ".codex"), nil, 0o600)) // in the way
	w := open(t, dir, false)
	path := func() string {
		h, warning, err := w.RunHome(parent, filepath.Join(temp, "run"), false)
		must(t, err)
		if !strings.Contains(warning, "temporary") {
			t.Errorf("warning %q", warning)
		}
		must(t, h.Remove())
		return h.Path()
	}
	first := path()
	if again := path(); again != first || filepath.Dir(filepath.Dir(first)) != temp {
		t.Errorf("homes one after another: %s, %s", first, again)
	}
	must(t, os.Mkdir(filepath.Dir(first), 0o777))
	if at := path(); filepath.Dir(at) == filepath.Dir(first) {
		t.Error("a home in an existing folder")
	}
	if tree := snapshot(t, temp); len(tree) != 1 {
		t.Errorf("left: %v", tree)
	}
}

func TestHomeHoldsWhatIsPutThere(t *testing.T) {
	t.Parallel()
	w := open(t, tempDir(t), false)
	h := newHome(t, w)
	must(t,
		h.WriteFile("config.toml", []byte("old and longer"), 0o644),
		h.WriteFile("config.toml", []byte("new"), 0o600),
		h.WriteFile("a/b.json", []byte("{}"), 0o640),
		h.Link("/nowhere/auth.json", "auth.json"),
		h.Link("/nowhere/other.json", "a/other.json"),
	)
	want := map[string]string{
		"config.toml": "-rw------- new", "a": "drwx------ ", "a/b.json": "-rw-r----- {}",
		"auth.json": "Lrwxrwxrwx /nowhere/auth.json", "a/other.json": "Lrwxrwxrwx /nowhere/other.json",
	}
	if diff := cmp.Diff(want, content(t, h)); diff != "" {
		t.Error(diff)
	}
	if got := w.Actions(); len(got) != 6 || !strings.HasPrefix(got[1], parent+"/"+filepath.Base(h.Path())+"/config.toml: ") {
		t.Errorf("actions = %q", got)
	}
}

func TestLinkReplaced(t *testing.T) {
	t.Parallel()
	h := newHome(t, open(t, tempDir(t), false))
	must(t, h.Link("/nowhere", "auth.json"))
	if h.LinkReplaced("auth.json") {
		t.Error("a link counts as replaced")
	}
	must(t, os.Remove(filepath.Join(h.Path(), "auth.json")))
	if h.LinkReplaced("auth.json") {
		t.Error("nothing at all counts as replaced")
	}
	must(t, os.WriteFile(filepath.Join(h.Path(), "auth.json"), nil, 0o600))
	if !h.LinkReplaced("auth.json") {
		t.Error("a file does not count as replaced")
	}
}

func TestHomeRefusesNamesThatLeadOut(t *testing.T) {
	t.Parallel()
	w := open(t, tempDir(t), false)
	h := newHome(t, w)
	for _, name := range []string{"", ".", "..", "../x", "a/../../x", "a/..", "/x", "a/", "a//b", "./a", "a\x00b"} {
		for what, err := range map[string]error{
			"WriteFile": h.WriteFile(name, nil, 0o600), "Link": h.Link("/x", name),
			"CopyIn from": h.CopyIn(name, "x"), "CopyIn to": h.CopyIn("x", name),
			"Keep": h.Keep(name, "x"), "Keep as": h.Keep("x", name), "Remove": h.Remove(name),
		} {
			if !errors.Is(err, instructions.ErrName) {
				t.Errorf("%s(%q) = %v, want ErrName", what, name, err)
			}
		}
		if _, err := w.NewHome(name); !errors.Is(err, instructions.ErrName) {
			t.Errorf("NewHome(%q) = %v, want ErrName", name, err)
		}
		if _, err := w.ReadFile(name, 10); !errors.Is(err, instructions.ErrName) {
			t.Errorf("ReadFile(%q) = %v, want ErrName", name, err)
		}
	}
	if err := h.Link("relative", "x"); err == nil {
		t.Error("a link to a relative target was made")
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	outside := tempDir(t)
	write(t, outside, map[string]string{"login.json": "secret", "tree/file": "x"})
	write(t, dir, map[string]string{"main.go": "package main"})
	before, beforeOutside := snapshot(t, dir), snapshot(t, outside)
	h := newHome(t, open(t, dir, false))
	must(t,
		h.Link(filepath.Join(outside, "login.json"), "login.json"), h.Link(filepath.Join(outside, "tree"), "tree"),
		h.WriteFile("locked/deep/file", []byte("x"), 0o400),
		os.Chmod(filepath.Join(h.Path(), "locked/deep"), 0o500), os.Chmod(filepath.Join(h.Path(), "locked"), 0),
	)
	must(t, h.Remove())
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(beforeOutside, snapshot(t, outside)); diff != "" {
		t.Error(diff)
	}
	if err := h.Remove(); err != nil {
		t.Errorf("removing it again: %v", err)
	}
	if err := h.WriteFile("x", nil, 0o600); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("WriteFile after Remove = %v, want fs.ErrClosed", err)
	}
}

func TestRemoveExcept(t *testing.T) {
	t.Parallel()
	h := newHome(t, open(t, tempDir(t), false))
	for _, name := range []string{"auth.json", "config.toml", "a/keep/x", "a/drop", "ab"} {
		must(t, h.WriteFile(name, []byte(name), 0o600))
	}
	must(t, h.Remove("auth.json", "a/keep", "b/absent"))
	want := map[string]string{"auth.json": "-rw------- auth.json", "a": "drwx------ ", "a/keep": "drwx------ ", "a/keep/x": "-rw------- a/keep/x"}
	if diff := cmp.Diff(want, snapshot(t, h.Path())); diff != "" {
		t.Error(diff)
	}
}

func TestRemoveWithMissingExceptionsLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	h := newHome(t, open(t, dir, false))
	must(t, h.WriteFile("a/b", nil, 0o600), h.Remove("auth.json", "a/c"))
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

func TestRemoveKeepsExistingDirectories(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"empty directory":    {".codex/": ""},
		"user's files":       {".codex/config.toml": "model = 1"},
		"empty parent":       {".codex/bus/": ""},
		"user's .gitignore":  {".codex/bus/.gitignore": "/mine\n"},
		"ours with a change": {".codex/bus/.gitignore": "# bus-agent keeps private files of agent runs here and removes them.\n*\n!mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, files)
			before := snapshot(t, dir)
			must(t, newHome(t, open(t, dir, false)).Remove())
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeepAndCopyIn(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	first := newHome(t, w)
	must(t,
		first.WriteFile("sessions/2026/one.jsonl", []byte("one"), 0o644), first.WriteFile("history", []byte("h"), 0o600),
		first.Link("/etc/passwd", "sessions/2026/link"), first.WriteFile("other", []byte("other"), 0o600),
		first.Keep("sessions", "sessions"), first.Keep("history", "deep/history"), first.Remove())

	second := newHome(t, w)
	must(t, second.WriteFile("sessions/2026/two.jsonl", []byte("two"), 0o600), second.WriteFile("h2", []byte("h2"), 0o600),
		second.Keep("sessions", "sessions"), second.Keep("h2", "deep/history"))
	kept := map[string]string{
		"sessions": "drwx------ ", "sessions/2026": "drwx------ ", "sessions/2026/one.jsonl": "-rw-r--r-- one",
		"sessions/2026/two.jsonl": "-rw------- two", "deep": "drwx------ ", "deep/history": "-rw------- h2",
	}
	if diff := cmp.Diff(kept, snapshot(t, keptBy(second))); diff != "" {
		t.Errorf("kept: %s", diff)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, os.Chtimes(filepath.Join(keptBy(second), "sessions/2026/one.jsonl"), old, old), second.Remove())

	third := newHome(t, w)
	must(t, third.CopyIn("sessions", "again/sessions"), third.CopyIn("deep/history", "history"))
	copied := map[string]string{
		"again": "drwx------ ", "again/sessions": "drwx------ ", "again/sessions/2026": "drwx------ ",
		"again/sessions/2026/one.jsonl": "-rw------- one", "again/sessions/2026/two.jsonl": "-rw------- two", "history": "-rw------- h2",
	}
	if diff := cmp.Diff(copied, content(t, third)); diff != "" {
		t.Errorf("copied: %s", diff)
	}
	info, err := os.Stat(filepath.Join(third.Path(), "again/sessions/2026/one.jsonl"))
	if err != nil || !info.ModTime().Equal(old) {
		t.Errorf("time of the copy = %v, %v, want that of the kept file", info, err)
	}
	if err := third.CopyIn("absent", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CopyIn of nothing = %v, want fs.ErrNotExist", err)
	}
	if err := third.Keep("absent", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Keep of nothing = %v, want fs.ErrNotExist", err)
	}
	must(t, third.Remove())
	if diff := cmp.Diff(kept, snapshot(t, keptBy(third))); diff != "" {
		t.Errorf("kept after the last run: %s", diff)
	}
}

func TestFindKept(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	for _, dryRun := range []bool{false, true} {
		h := newHome(t, open(t, dir, dryRun))
		if rel, err := h.FindKept(func(string) bool { return true }); rel != "" || err != nil {
			t.Errorf("FindKept of nothing = %q, %v", rel, err)
		}
		must(t, h.Remove())
	}
	kept := filepath.Join(dir, parent, "sessions")
	write(t, kept, map[string]string{"a/x.jsonl": "", "b/y.jsonl": "", "c/z.txt": ""})
	must(t, os.Symlink("a/x.jsonl", filepath.Join(kept, "w.jsonl")))
	for i, name := range []string{"a/x.jsonl", "b/y.jsonl", "c/z.txt"} {
		at := time.Date(2026, 1, 3-i%2, 0, 0, 0, 0, time.UTC)
		must(t, os.Chtimes(filepath.Join(kept, name), at, at))
	}
	for _, dryRun := range []bool{false, true} {
		h := newHome(t, open(t, dir, dryRun))
		rel, err := h.FindKept(func(rel string) bool { return strings.HasSuffix(rel, ".jsonl") })
		if rel != "a/x.jsonl" || err != nil {
			t.Errorf("FindKept = %q, %v, want the newest", rel, err)
		}
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, true)
	h, err := w.NewHome(parent)
	must(t, err,
		h.WriteFile("config.toml", []byte("x"), 0o600), h.Link("/login", "auth.json"),
		h.CopyIn("s", "sessions"), h.Keep("sessions", "s"), h.Remove())
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("written: %v", tree)
	}
	if want := filepath.Join(dir, parent, "<home>"); h.Path() != want {
		t.Errorf("path = %s, want %s", h.Path(), want)
	}
	want := []string{
		".codex/bus/<home>: private home, removed at the end of the run",
		".codex/bus/<home>/config.toml: 1 bytes",
		".codex/bus/<home>/auth.json: link to /login",
		".codex/bus/<home>/sessions: copied from the kept s",
	}
	if diff := cmp.Diff(want, w.Actions()); diff != "" {
		t.Error(diff)
	}
}

func TestHomeRefusesToLeaveTheWorkdir(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(dir, outside string) error{
		"first directory is a link": func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, ".codex")) },
		"parent is a link": func(dir, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, ".codex"), 0o755), os.Symlink(outside, filepath.Join(dir, parent)))
		},
		"link to a missing place": func(dir, outside string) error {
			return os.Symlink(filepath.Join(outside, "missing"), filepath.Join(dir, ".codex"))
		},
		"file": func(dir, outside string) error { return os.WriteFile(filepath.Join(dir, ".codex"), nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, outside := tempDir(t), tempDir(t)
			must(t, plant(dir, outside))
			before := snapshot(t, dir)
			if h, err := open(t, dir, false).NewHome(parent); err == nil {
				t.Errorf("a home was made at %s", h.Path())
			}
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Error(diff)
			}
			if tree := snapshot(t, outside); len(tree) != 0 {
				t.Errorf("written outside: %v", tree)
			}
		})
	}
}

// TestManyHomesAtOnce makes and removes homes from many goroutines, as processes would.
// The parent directories appear and disappear, no call fails, and nothing remains.
func TestManyHomesAtOnce(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	makeHomes(t, dir)
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

// The same holds while another program has the lock of the workdir.
func TestManyHomesWithoutTheLock(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	makeHomes(t, dir)
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

func makeHomes(t *testing.T, dir string) {
	t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		w := open(t, dir, false)
		wg.Go(func() {
			for range 25 {
				h, err := w.NewHome(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(h.WriteFile("x", nil, 0o600), h.Remove()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHomeIsAlwaysHiddenFromGit(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, file string){
		"other content":  func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte("!*\n"), 0o644)) },
		"dangling link":  func(t *testing.T, file string) { must(t, os.Symlink("nowhere", file)) },
		"link to itself": func(t *testing.T, file string) { must(t, os.Symlink(".gitignore", file)) },
		"directory":      func(t *testing.T, file string) { must(t, os.Mkdir(file, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			base := filepath.Join(dir, filepath.FromSlash(parent))
			must(t, os.MkdirAll(base, 0o755))
			plant(t, filepath.Join(base, ".gitignore"))
			before := snapshot(t, dir)
			h := newHome(t, open(t, dir, false))
			must(t, h.WriteFile("session", nil, 0o600), h.Keep("session", "session"))
			for _, hidden := range []string{h.Path(), keptBy(h)} {
				if text, err := os.ReadFile(filepath.Join(hidden, ".gitignore")); err != nil || string(text) != "*\n" {
					t.Errorf("%s: %q, %v, want it hidden", hidden, text, err)
				}
			}
			must(t, h.Remove(), os.RemoveAll(keptBy(h)))
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// keptBy returns the directory of the files that h and other homes kept.
func keptBy(h *instructions.Home) string { return filepath.Join(filepath.Dir(h.Path()), "sessions") }

func TestOpenStopsWithTheBudget(t *testing.T) {
	t.Parallel()
	w := open(t, tempDir(t), false)
	h := newHome(t, w)
	must(t, h.WriteFile("a", nil, 0o600), h.Rename("a", "b"))
	ctx, budget := tree.With(t.Context(), tree.Limits{Entries: 3})
	w.Bound(ctx)
	for range 3 {
		f, err := h.Open("b")
		must(t, err, f.Close())
	}
	if _, err := h.Open("b"); !errors.Is(err, tree.ErrOver) || budget.Spent() == nil {
		t.Errorf("a file beyond the budget: %v", err)
	}
	must(t, h.RemoveFile("b"))
	for _, err := range []error{h.RemoveFile("../b"), h.Rename("b", "../b"), h.Rename("../b", "b")} {
		if !errors.Is(err, instructions.ErrName) {
			t.Errorf("a name outside the home: %v", err)
		}
	}
}
