package instructions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/google/go-cmp/cmp"
)

// layered makes a repository with an AGENTS.md in ".", "sub" and "sub/deep", and
// returns the chain of "sub/deep".
func layered(t testing.TB, root, sub, deep string) instructions.Chain {
	t.Helper()
	dir := tempDir(t)
	write(t, dir, map[string]string{
		".git/HEAD": "ref", "AGENTS.md": root, "sub/AGENTS.md": sub, "sub/deep/AGENTS.md": deep,
	})
	return discover(t, filepath.Join(dir, "sub/deep"))
}

func text(t testing.TB, chain instructions.Chain, limit int) (string, []string) {
	t.Helper()
	got, warnings, err := chain.Text(limit)
	if err != nil {
		t.Fatal(err)
	}
	return got, warnings
}

func TestTextJoinsRootFirst(t *testing.T) {
	t.Parallel()
	got, warnings := text(t, layered(t, "root\n", "sub", "deep\n"), 0)
	want := `--- AGENTS.md (for directory: .) ---
root

--- sub/AGENTS.md (for directory: sub) ---
sub

--- sub/deep/AGENTS.md (for directory: sub/deep) ---
deep

`
	if diff := cmp.Diff(want, got); diff != "" || warnings != nil {
		t.Errorf("%s warnings %q", diff, warnings)
	}
}

func TestTextOfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	if got, warnings := text(t, discover(t, tempDir(t)), 0); got != "" || warnings != nil {
		t.Errorf("text = %q, warnings %q, want none", got, warnings)
	}
	if got, warnings := text(t, layered(t, "", "", ""), 0); got != "" || warnings != nil {
		t.Errorf("text of empty files = %q, warnings %q, want none", got, warnings)
	}
}

func lines(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s line %d\n", name, i)
	}
	return b.String()
}

// TestTextServesTheClosestFirst checks for every limit that the text is within it, that
// the closest files take precedence, and that every cut is at the end of a line and
// reported in the text and in a warning.
func TestTextServesTheClosestFirst(t *testing.T) {
	t.Parallel()
	files := []string{lines("root", 40), lines("sub", 30), lines("deep", 20)}
	chain := layered(t, files[0], files[1], files[2])
	whole, _ := text(t, chain, 0)
	fits := false
	for limit := 1; limit <= len(whole)+10; limit++ {
		got, warnings := text(t, chain, limit)
		if len(got) > limit {
			t.Fatalf("limit %d: %d bytes", limit, len(got))
		}
		cut := 0 // number of incomplete files, from the root
		for i, file := range files {
			name := []string{"root", "sub", "deep"}[i]
			have := strings.Count(got, name+" line ")
			if !strings.Contains(got, lines(name, have)) {
				t.Fatalf("limit %d: %s is not cut at a line", limit, name)
			}
			if have == strings.Count(file, "\n") {
				continue
			}
			if cut != i {
				t.Fatalf("limit %d: %s is cut, but a file farther away is whole", limit, name)
			}
			cut++
			if i > 0 && strings.Contains(got, []string{"root", "sub"}[i-1]+" line ") {
				t.Fatalf("limit %d: %s is cut, but it contains a part of one farther away", limit, name)
			}
			rel := []string{"AGENTS.md", "sub/AGENTS.md", "sub/deep/AGENTS.md"}[i]
			mark := fmt.Sprintf("[%s cut here: %d of %d bytes delivered]\n", rel, len(lines(name, have)), len(file))
			if (limit > 1000 || have > 0) && !strings.Contains(got, mark) {
				t.Fatalf("limit %d: no mark %q in\n%s", limit, mark, got)
			}
		}
		if len(warnings) != cut {
			t.Fatalf("limit %d: %d files cut, warnings %q", limit, cut, warnings)
		}
		if within := chain.WithinLimit(limit); within != (cut == 0) {
			t.Fatalf("limit %d: WithinLimit = %v, but %d files are cut", limit, within, cut)
		}
		if cut == 0 {
			fits = true
		} else if fits {
			t.Fatalf("limit %d: cut, although a smaller limit did", limit)
		}
	}
	if !fits {
		t.Error("no limit was enough")
	}
}

func TestTextDeliversNoPartOfALine(t *testing.T) {
	t.Parallel()
	chain := layered(t, strings.Repeat("x", 5000), "", "deep\n")
	got, warnings := text(t, chain, 4000)
	if strings.Contains(got, "xx") || !strings.Contains(got, "[AGENTS.md cut here: 0 of 5000 bytes delivered]") ||
		!strings.Contains(got, "deep\n") || len(warnings) != 1 {
		t.Errorf("text = %q, warnings %q", got, warnings)
	}
}

func TestTextReadsNoMoreThanItDelivers(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"AGENTS.md": "first\n"})
	const huge = 1 << 40 // sparse; too large to read during a test
	if err := os.Truncate(filepath.Join(dir, "AGENTS.md"), huge); err != nil {
		testneed.Lacking(t, "the file system has no files of a terabyte: %v", err)
	}
	chain := discover(t, dir)
	if chain.WithinLimit(0) || chain.Size() != huge {
		t.Errorf("WithinLimit of %d bytes = true", chain.Size())
	}
	got, warnings := text(t, chain, 1<<62)
	if !strings.Contains(got, "first\n[AGENTS.md cut here: 6 of 1099511627776 bytes delivered]\n") || len(warnings) != 1 {
		t.Errorf("text = %q, warnings %q", got, warnings)
	}
	if len(got) > instructions.MaxBytes {
		t.Errorf("%d bytes, want at most %d", len(got), instructions.MaxBytes)
	}
}

func TestTextHasEachFileOnce(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{".git/HEAD": "ref", "AGENTS.md": "only once\n", "sub/": ""})
	if err := os.Symlink("../AGENTS.md", filepath.Join(dir, "sub/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if got, _ := text(t, discover(t, filepath.Join(dir, "sub")), 0); strings.Count(got, "only once") != 1 {
		t.Errorf("text = %q, want the file once", got)
	}
}

func TestTextWarnsOfAFileThatIsGone(t *testing.T) {
	t.Parallel()
	chain := layered(t, "root\n", "sub\n", "deep\n")
	if err := os.Remove(filepath.Join(chain.Root, "sub/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	got, warnings := text(t, chain, 0)
	if !strings.Contains(got, "root\n") || !strings.Contains(got, "deep\n") ||
		len(warnings) != 1 || !strings.HasPrefix(warnings[0], "sub/AGENTS.md was left out: ") {
		t.Errorf("text = %q, warnings %q", got, warnings)
	}
}

func TestTextKeepsDirectoryNamesOnTheirLine(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{".git/HEAD": "ref", "a\n--- b/AGENTS.md": "x\n"})
	got, _ := text(t, discover(t, filepath.Join(dir, "a\n--- b")), 0)
	if strings.Contains(got, "\n---") {
		t.Errorf("text = %q, want one line before the file", got)
	}
}

func ExampleDiscover() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Run make test.\n"), 0o644); err != nil {
		panic(err)
	}
	chain, err := instructions.Discover(dir)
	if err != nil {
		panic(err)
	}
	text, _, err := chain.Text(instructions.MaxBytes)
	fmt.Print(text, err)
	// Output:
	// --- AGENTS.md (for directory: .) ---
	// Run make test.
	//
	// <nil>
}
