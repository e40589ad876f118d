package instructions

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/tree"
)

func TestChecksAreBounded(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]bool{20: false, 59: false, 60: true} {
		s, err := tree.NewSurvey(t.Context(), limit, Names(nil), dir)
		if err != nil {
			t.Fatal(err)
		}
		chain := Chain{Root: dir, Workdir: dir}
		if complete, err := chain.CheckReads(tree.WithSurvey(t.Context(), s), nil, false); complete != want || err != nil {
			t.Errorf("limit %d: CheckReads = %t, %v", limit, complete, err)
		}
	}
	for i := range 30 {
		if err := os.MkdirAll(filepath.Join(dir, ".git", "objects", strconv.Itoa(i), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k := &check{ctx: t.Context(), top: dir, root: dir, limit: 62}
	if complete, err := k.below(dir, nil); !complete || err != nil {
		t.Errorf("the objects of git count: %t, %v", complete, err)
	}
	k = &check{ctx: t.Context(), top: dir, root: dir, limit: 20}
	if err := k.expand(dir, []string{"**", "S.md"}, Read{}, 0); err == nil {
		t.Error("a pattern that cannot be checked whole is accepted")
	}
}

func TestImportsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range maxImportDepth + 3 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte("@"+strconv.Itoa(i+1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := &check{ctx: t.Context(), top: dir, root: dir, limit: 1, imported: map[string]bool{}}
	err := k.file(filepath.Join(dir, "0"), reading{Read: Read{Imports: true}})
	if err == nil || !strings.Contains(err.Error(), "too many files") {
		t.Errorf("file = %v", err)
	}
}
