package instructions_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
)

var block = instructions.Block{
	Path: "docs/CLAUDE.md", Name: "agents-md", Comment: instructions.CommentHTML, Text: "@AGENTS.md\n",
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(data)
}

func TestAddBlockAppends(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"docs/CLAUDE.md": "user text"})
	file := filepath.Join(dir, block.Path)
	w := open(t, dir, false)
	must(t, w.AddBlock(block))
	want := "user text\n" +
		"<!-- bus-agent:begin agents-md v1 made=0 join=true bytes=11 id=d9f765101a76fa2b -->\n" +
		"@AGENTS.md\n" +
		"<!-- bus-agent:end agents-md id=d9f765101a76fa2b -->\n"
	if diff := cmp.Diff(want, read(t, file)); diff != "" {
		t.Error(diff)
	}
	must(t, w.AddBlock(block))
	if diff := cmp.Diff(want, read(t, file)); diff != "" {
		t.Errorf("adding it again changed the file: %s", diff)
	}
	if diff := cmp.Diff([]string{"docs/CLAUDE.md: block agents-md, 11 bytes"}, w.Actions()); diff != "" {
		t.Error(diff)
	}
}

// TestBlocksComeAndGo adds and removes a block in every kind of file, and checks that
// the user's bytes remain and that removal restores the file.
func TestBlocksComeAndGo(t *testing.T) {
	t.Parallel()
	whole := "<!-- bus-agent:begin agents-md v1 made=0 join=false bytes=3 id=0000000000000000 -->\nhi\n<!-- bus-agent:end agents-md id=0000000000000000 -->\n"
	for name, content := range map[string]string{
		"empty": "", "line": "a\n", "no final line break": "a", "only line breaks": "\n\n", "CRLF": "a\r\nb\r\n",
		"NUL": "a\x00b", "begin marker": "<!-- bus-agent:begin agents-md v1 made=1 join=false bytes=11 id=x -->\n",
		"end marker": "<!-- bus-agent:end agents-md id=x -->", "forged block": whole,
		"hash": "# bus-agent:begin agents-md v1 made=1 join=true bytes=0 id=0\n",
	} {
		for _, comment := range []instructions.Comment{instructions.CommentHash, instructions.CommentHTML} {
			t.Run(name+" "+string(comment), func(t *testing.T) {
				t.Parallel()
				b := block
				b.Comment, b.Text = comment, content+"@AGENTS.md\n"+content
				dir := tempDir(t)
				write(t, dir, map[string]string{b.Path: content})
				must(t, os.Chmod(filepath.Join(dir, b.Path), 0o640))
				before := snapshot(t, dir)
				w := open(t, dir, false)
				err := w.AddBlock(b)
				if name == "forged block" && comment == instructions.CommentHTML {
					if !errors.Is(err, instructions.ErrEdited) {
						t.Errorf("AddBlock = %v, want ErrEdited", err)
					}
				} else {
					must(t, err)
					got := read(t, filepath.Join(dir, b.Path))
					if !strings.HasPrefix(got, content) || !strings.Contains(got, b.Text) {
						t.Errorf("content = %q", got)
					}
					b.Text = "other\n"
					must(t, w.AddBlock(b))
					if got := read(t, filepath.Join(dir, b.Path)); strings.Contains(got, "@AGENTS.md") || !strings.Contains(got, "other\n") {
						t.Errorf("the text was not replaced: %q", got)
					}
					must(t, w.RemoveBlock(b), w.RemoveBlock(b))
				}
				if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestBlockInANewFile(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"no directory": nil, "empty directory": {"docs/": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, files)
			before := snapshot(t, dir)
			w := open(t, dir, false)
			must(t, w.AddBlock(block))
			if mode := snapshot(t, dir)[block.Path]; !strings.HasPrefix(mode, "-rw-r--r-- <!-- bus-agent:begin ") {
				t.Errorf("file = %q", mode)
			}
			must(t, w.RemoveBlock(instructions.Block{Path: block.Path, Name: block.Name, Comment: block.Comment}))
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRemoveBlockKeepsWhatCameLater(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, add, want string }{
		"new file":      {"", "mine\n", "mine\n"},
		"existing file": {"a", "b", "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			file := filepath.Join(dir, block.Path)
			if test.before != "" {
				write(t, dir, map[string]string{block.Path: test.before})
			}
			w := open(t, dir, false)
			must(t, w.AddBlock(block), os.WriteFile(file, []byte(read(t, file)+test.add), 0o644), w.RemoveBlock(block))
			if got := read(t, file); got != test.want {
				t.Errorf("content = %q, want %q", got, test.want)
			}
		})
	}
}

func TestEditedBlockStays(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	file := filepath.Join(dir, block.Path)
	w := open(t, dir, false)
	must(t, w.AddBlock(block))
	edited := strings.Replace(read(t, file), "@AGENTS.md", "@AGENTS.md and mine", 1)
	must(t, os.WriteFile(file, []byte(edited), 0o644))
	for what, err := range map[string]error{"AddBlock": w.AddBlock(block), "RemoveBlock": w.RemoveBlock(block)} {
		if !errors.Is(err, instructions.ErrEdited) {
			t.Errorf("%s = %v, want ErrEdited", what, err)
		}
	}
	if got := read(t, file); got != edited {
		t.Errorf("content = %q", got)
	}
}

func TestBlocksOfOneFileAreDistinct(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{block.Path: "user"})
	other := block
	other.Name, other.Text = "agents", "other\n"
	w := open(t, dir, false)
	must(t, w.AddBlock(block), w.AddBlock(other), w.RemoveBlock(block))
	if got := read(t, filepath.Join(dir, block.Path)); !strings.Contains(got, "other\n") || strings.Contains(got, "@AGENTS.md") {
		t.Errorf("content = %q", got)
	}
	must(t, w.RemoveBlock(other))
	if got := strings.TrimSuffix(read(t, filepath.Join(dir, block.Path)), "\n"); got != "user" {
		t.Errorf("content = %q", got)
	}
}

func TestBlocksKeepToRegularFilesInside(t *testing.T) {
	t.Parallel()
	dir, outside := tempDir(t), tempDir(t)
	write(t, outside, map[string]string{"file": "outside"})
	write(t, dir, map[string]string{"real.md": "inside", "docs/": ""})
	w := open(t, dir, false)
	for target, want := range map[string]error{"../real.md": instructions.ErrNotRegular, filepath.Join(outside, "file"): instructions.ErrNotRegular} {
		must(t, os.Symlink(target, filepath.Join(dir, block.Path)))
		if err := w.AddBlock(block); !errors.Is(err, want) {
			t.Errorf("AddBlock through a link to %s = %v, want %v", target, err, want)
		}
		must(t, os.Remove(filepath.Join(dir, block.Path)))
	}
	must(t, os.Remove(filepath.Join(dir, "docs")), os.Symlink(outside, filepath.Join(dir, "docs")))
	for _, name := range []string{"docs/CLAUDE.md", "docs/file", "../x", "/x"} {
		b := block
		b.Path = name
		if err := w.AddBlock(b); err == nil {
			t.Errorf("AddBlock to %s succeeded", name)
		}
	}
	if diff := cmp.Diff(map[string]string{"file": "-rw-r--r-- outside"}, snapshot(t, outside)); diff != "" {
		t.Error(diff)
	}
	if got := read(t, filepath.Join(dir, "real.md")); got != "inside" {
		t.Errorf("real.md = %q", got)
	}
}

func TestBlockDryRun(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, true)
	must(t, w.AddBlock(block), w.AddToJSON(list))
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("written: %v", tree)
	}
	want := []string{
		"docs/CLAUDE.md: block agents-md, 11 bytes",
		`.gemini/settings.json: "AGENTS.md" added to context.fileName`,
	}
	if diff := cmp.Diff(want, w.Actions()); diff != "" {
		t.Error(diff)
	}
}

func TestManyAddOneBlockAtOnce(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"docs/CLAUDE.md": "user"})
	var wg sync.WaitGroup
	for range 8 {
		w := open(t, dir, false)
		wg.Go(func() {
			if err := errors.Join(w.AddBlock(block), w.AddToJSON(list)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := read(t, filepath.Join(dir, block.Path)); strings.Count(got, "@AGENTS.md\n") != 1 {
		t.Errorf("content = %q, want the block once", got)
	}
	w := open(t, dir, false)
	must(t, w.RemoveBlock(block), w.RemoveFromJSON(list))
	want := map[string]string{"docs": "drwxr-xr-x ", "docs/CLAUDE.md": "-rw-r--r-- user"}
	if diff := cmp.Diff(want, snapshot(t, dir)); diff != "" {
		t.Error(diff)
	}
}
