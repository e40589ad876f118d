package gitenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/tree"
)

func newFinder(t *testing.T) *finder {
	return &finder{ctx: t.Context(), seen: make(map[string]bool)}
}

// A value is looked for in each folder once, and each further folder counts.
func TestHostileWorktrees(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	c := &configuration{}
	for range 100 {
		c.entries = append(c.entries, entry{key: "core.worktree", value: "d"}, entry{key: "core.worktree", value: "./d"})
	}
	f := newFinder(t)
	folders, err := f.worktrees(dir, dir, []*configuration{c})
	if err != nil || len(folders) != 2 || len(f.queue) != 1 {
		t.Errorf("%q, %d in the queue, %v", folders, len(f.queue), err)
	}
	f.values = tree.SurveyEntries - 10
	if err := f.value("x", entry{key: "a.b", value: "c"}, make([]string, 20)); err == nil {
		t.Error("20 folders are accepted where 10 are left")
	}
}

func TestHostileAlternates(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		write(t, fmt.Sprintf("%s/%d/info/alternates", dir, i), fmt.Sprintf("../%[1]d\n../%[1]d\n../0\n", i+1))
	}
	f := newFinder(t)
	if err := f.alternates(dir + "/0"); err != nil || f.files != maxAlternates+1 || f.values != 2*f.files {
		t.Errorf("%d files, %d values, %v", f.files, f.values, err)
	}
	f.files = maxFiles
	if err := f.alternates(dir + "/0"); err == nil {
		t.Error("one file too many is accepted")
	}
	write(t, dir+"/0/info/alternates", strings.Repeat("#", maxFile+1))
	if err := newFinder(t).alternates(dir + "/0"); err == nil {
		t.Error("a file that is too large is accepted")
	}
}

// What is too long is refused before all of it is collected.
func TestHostileOverridesEndEarly(t *testing.T) {
	t.Parallel()
	f := newFinder(t)
	for i := range 10_000 {
		f.found = append(f.found, found{entry{key: fmt.Sprintf("alias.%s%d", strings.Repeat("x", 20), i), value: "!x"}, "file", &rule{}})
	}
	_, err := f.override(nil, false)
	var n int
	if err != nil {
		fmt.Sscanf(err.Error(), "file: at least %d", &n)
	}
	if n <= maxParameters || n > maxParameters+100 {
		t.Error(err)
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFinder(t)
	f.ctx = ctx
	e := entry{key: "core.worktree", value: "."}
	dir := t.TempDir()
	write(t, dir+"/info/alternates", "../x\n")
	for name, err := range map[string]error{
		"value":      f.value("x", e, []string{dir}),
		"alternates": f.alternates(dir),
		"worktrees":  second(f.worktrees(dir, dir, []*configuration{{entries: []entry{e}}})),
		"override":   second((&finder{ctx: ctx, found: []found{{e, "x", &rule{}}}}).override(nil, false)),
		"hooks":      second((&finder{ctx: ctx, hooks: []string{"x"}}).override(nil, false)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
