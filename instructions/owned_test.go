package instructions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
)

var owned = []instructions.Owned{
	{Home: parent}, {Home: ".gemini/bus"}, {Block: &block}, {JSON: &list}, {Home: parent, JSON: &list},
}

func show(t testing.TB, dir string) []instructions.Found {
	t.Helper()
	found, err := instructions.Show(t.Context(), dir, owned)
	must(t, err)
	return found
}

func clean(t testing.TB, dir string) []instructions.Found {
	t.Helper()
	found, err := instructions.Clean(t.Context(), dir, owned)
	must(t, err)
	return found
}

// addAll adds every kind of file to dir, as a killed run leaves them.
func addAll(t testing.TB, dir string) {
	t.Helper()
	w := open(t, dir, false)
	must(t, w.AddBlock(block), w.AddToJSON(list))
	h := newHome(t, w)
	must(t, h.WriteFile("sessions/x", nil, 0o600), h.Keep("sessions", "s"), h.WriteFile("auth.json", nil, 0o600), h.Remove("auth.json"))
}

func TestShowAndCleanFindEverything(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"empty":      nil,
		"user files": {"docs/CLAUDE.md": "mine", list.Path: "{\n  // mine\n  \"a\": 1\n}", ".codex/config.toml": "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, files)
			before := snapshot(t, dir)
			if found := show(t, dir); found != nil {
				t.Errorf("found %v where nothing is", found)
			}
			addAll(t, dir)
			homes, err := filepath.Glob(filepath.Join(dir, parent, "????????????????"))
			if err != nil || len(homes) != 1 {
				t.Fatalf("homes = %q, %v", homes, err)
			}
			want := []instructions.Found{
				{Path: parent + "/" + filepath.Base(homes[0]), What: "private home"},
				{Path: parent + "/sessions", What: "kept sessions"},
				{Path: "docs/CLAUDE.md", What: "block agents-md"},
				{Path: ".gemini/settings.json", What: `"AGENTS.md" in context.fileName`},
			}
			with := snapshot(t, dir)
			if diff := cmp.Diff(want, show(t, dir)); diff != "" {
				t.Errorf("Show: %s", diff)
			}
			if diff := cmp.Diff(with, snapshot(t, dir)); diff != "" {
				t.Errorf("Show changed something: %s", diff)
			}
			if diff := cmp.Diff(want, clean(t, dir)); diff != "" {
				t.Errorf("Clean: %s", diff)
			}
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Errorf("left or lost: %s", diff)
			}
			if found := clean(t, dir); found != nil {
				t.Errorf("cleaned twice: %v", found)
			}
		})
	}
}

func TestCleanLeavesWhatIsInUse(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	h := newHome(t, w)
	must(t, h.WriteFile("x", []byte("x"), 0o600), h.WriteFile("s", nil, 0o600), h.Keep("s", "s"))
	want := []instructions.Found{
		{Path: parent + "/" + filepath.Base(h.Path()), What: "private home", InUse: true},
		{Path: parent + "/sessions", What: "kept sessions", InUse: true},
	}
	before := snapshot(t, dir)
	for what, got := range map[string][]instructions.Found{"Show": show(t, dir), "Clean": clean(t, dir)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Error(diff)
	}
	must(t, h.Remove())
	clean(t, dir)
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

func TestCleanLeavesAdditionsOfALiveRun(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	h := newHome(t, w)
	must(t, w.AddBlock(block), w.AddToJSON(list))
	with := []instructions.Owned{{Home: parent, Block: &block, JSON: &list}}
	before := snapshot(t, dir)
	for _, look := range []func(context.Context, string, []instructions.Owned) ([]instructions.Found, error){instructions.Show, instructions.Clean} {
		found, err := look(t.Context(), dir, with)
		must(t, err)
		for _, f := range found {
			if !f.InUse {
				t.Errorf("%+v is not in use", f)
			}
		}
		if len(found) != 3 {
			t.Errorf("found %+v", found)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	must(t, h.Remove())
	found, err := instructions.Clean(t.Context(), dir, with)
	must(t, err)
	for _, f := range found {
		if f.InUse {
			t.Errorf("%+v is in use after the run", f)
		}
	}
	if left, err := instructions.Show(t.Context(), dir, with); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestCleanRemovesAReadOnlyHomeOfADeadRun(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	home := filepath.Join(dir, parent, "0123456789abcdef")
	write(t, home, map[string]string{"locked/file": "x"})
	must(t, os.Chmod(filepath.Join(home, "locked"), 0o500), os.Chmod(home, 0))
	clean(t, dir)
	if exists(home) {
		t.Error("the home is left")
	}
	if !exists(filepath.Join(dir, parent)) {
		t.Error("an unclaimed directory was removed")
	}
}

func TestCleanLeavesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	dir, outside := tempDir(t), tempDir(t)
	write(t, outside, map[string]string{"0123456789abcdef/x": "x", "sessions/x": "x"})
	write(t, dir, map[string]string{
		".codex/bus/mine": "x", ".codex/bus/notahome/x": "x", ".codex/bus/.gitignore": "mine",
		"docs/CLAUDE.md": "<!-- bus-agent:begin agents-md -->\n", list.Path: "{ not JSON",
	})
	must(t, os.Symlink(outside, filepath.Join(dir, ".gemini/bus")),
		os.Symlink(outside, filepath.Join(dir, parent, "sessions")),
		os.Symlink(filepath.Join(outside, "0123456789abcdef"), filepath.Join(dir, parent, "0123456789abcdef")))
	before, beforeOutside := snapshot(t, dir), snapshot(t, outside)
	found, _ := instructions.Clean(t.Context(), dir, owned)
	if found != nil {
		t.Errorf("found %v", found)
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(beforeOutside, snapshot(t, outside)); diff != "" {
		t.Error(diff)
	}
}

func TestCleanReportsWhatItLeaves(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	must(t, w.AddBlock(block), w.AddToJSON(list))
	for name, edit := range map[string][2]string{
		block.Path: {"@AGENTS.md", "@OTHER.md"}, list.Path: {`"version":1`, `"version":9`},
	} {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(strings.Replace(read(t, file), edit[0], edit[1], 1)), 0o644))
	}
	before := snapshot(t, dir)
	found := clean(t, dir)
	if len(found) != 2 || found[0].Problem == "" || found[1].Problem == "" {
		t.Errorf("found = %+v, want two problems", found)
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestCleanOfAFileInPlaceOfADirectory(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{".codex": "x", ".gemini": "x", "docs": "x"})
	if found := clean(t, dir); found != nil {
		t.Errorf("found %v", found)
	}
}

func TestCleanWithoutWorkdir(t *testing.T) {
	t.Parallel()
	if _, err := instructions.Clean(t.Context(), filepath.Join(tempDir(t), "missing"), owned); err == nil {
		t.Error("Clean succeeded")
	}
}

func ExampleClean() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	chain, err := instructions.Discover(dir)
	if err != nil {
		panic(err)
	}
	w, err := instructions.Open(chain, false)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	ignore := instructions.Block{Path: ".geminiignore", Name: "homes", Comment: instructions.CommentHash, Text: ".gemini/bus/\n"}
	if err := w.AddBlock(ignore); err != nil {
		panic(err)
	}
	found, err := instructions.Clean(context.Background(), dir, []instructions.Owned{{Block: &ignore}})
	fmt.Println(found[0].Path, found[0].What, err)
	// Output: .geminiignore block homes <nil>
}
