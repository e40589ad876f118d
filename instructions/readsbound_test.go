package instructions

import (
	"errors"
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
	k := &check{ctx: t.Context(), top: dir, root: dir, limit: 1, importLimit: maxImportBytes, imported: map[string]bool{}}
	err := k.file(filepath.Join(dir, "0"), reading{Read: Read{Imports: true}})
	if err == nil || !strings.Contains(err.Error(), "too many files") {
		t.Errorf("file = %v", err)
	}
}

// A file with many names is not checked endlessly.
func TestManyNames(t *testing.T) {
	t.Parallel()
	const names, size = 50, 1000
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("CTX.md", strings.Repeat("x", size))
	write("g/HEAD", "ref: refs/heads/x")
	write("g/config", strings.Repeat("a=b\n", size))
	for i := range names {
		write("g/refs/heads/"+strconv.Itoa(i), "")
		write(strconv.Itoa(i)+"/.git", "gitdir: ../g")
		if err := os.Link(filepath.Join(dir, "CTX.md"), filepath.Join(dir, strconv.Itoa(i), "CTX.md")); err != nil {
			t.Fatal(err)
		}
	}
	for _, trusted := range []bool{false, true} {
		k := &check{
			ctx: t.Context(), top: dir, root: dir, trusted: trusted, limit: 5 * size, importLimit: 5 * size,
			imported: map[string]bool{}, repositories: map[string]bool{},
		}
		for i := range names {
			where := filepath.Join(dir, strconv.Itoa(i))
			err := errors.Join(k.git(where), k.file(filepath.Join(where, "CTX.md"), reading{Read: Read{Imports: true}}))
			if refused := i > 6 && !trusted; (err != nil) != refused && (i < 4 || i > 6) {
				t.Errorf("trusted %t, %d: %v", trusted, i, err)
			}
		}
		if k.gitEntries > k.limit+size || k.bytes > k.importLimit+size {
			t.Errorf("trusted %t: %d values of git and %d bytes were looked at", trusted, k.gitEntries, k.bytes)
		}
	}
}
