package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// memoryNames are the instruction files of Claude Code in a directory.
var memoryNames = []string{"CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"}

// A tree is the part of the repository that instructions come from. All files are read
// through one os.Root, so no symlink leads out of it.
type tree struct {
	root   *os.Root
	dirs   []string // relative to the root, slash-separated, root first
	agents []file   // the AGENTS.md files of the chain
}

// A file is an instruction file that was read.
type file struct {
	rel  string // relative to the root, slash-separated
	info fs.FileInfo
	body []byte
}

func openTree(chain instructions.Chain) (*tree, error) {
	root, err := os.OpenRoot(chain.Root)
	if err != nil {
		return nil, fmt.Errorf("claude: %w", err)
	}
	t := &tree{root: root}
	for _, dir := range chain.Dirs() {
		rel, err := filepath.Rel(chain.Root, dir)
		if err != nil {
			root.Close()
			return nil, fmt.Errorf("claude: %w", err)
		}
		t.dirs = append(t.dirs, filepath.ToSlash(rel))
	}
	for _, f := range chain.Files {
		if read, err := t.read(f.Rel); err == nil {
			t.agents = append(t.agents, read)
		}
	}
	return t, nil
}

func (t *tree) close() { t.root.Close() }

// read reads a regular file of at most instructions.MaxBytes and one byte.
func (t *tree) read(rel string) (file, error) {
	// A FIFO or a device is not opened, so it cannot block.
	info, err := t.root.Stat(rel)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() {
		return file{}, instructions.ErrNotRegular
	}
	f, err := t.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return file{}, instructions.ErrNotRegular
	}
	body, err := io.ReadAll(io.LimitReader(f, instructions.MaxBytes+1))
	return file{rel: rel, info: info, body: body}, err
}

// same reports whether f is another name or a copy of one of files.
func (f file) same(files []file) bool {
	return slices.ContainsFunc(files, func(other file) bool {
		return os.SameFile(f.info, other.info) || bytes.Equal(f.body, other.body)
	})
}

// present returns those of names that exist in a directory of the tree.
func (t *tree) present(names []string) []string {
	var found []string
	for _, dir := range t.dirs {
		for _, name := range names {
			rel := path.Join(dir, name)
			if _, err := t.root.Lstat(rel); err == nil {
				found = append(found, rel)
			}
		}
	}
	return found
}

// appendMemory appends to text what the CLAUDE.md files of the tree add to its
// AGENTS.md files, up to the limit.
func (t *tree) appendMemory(text, userMemory string, setup *registry.Setup) string {
	delivered := t.agents
	own, ownErr := os.Stat(userMemory)
	for _, dir := range t.dirs {
		for _, name := range memoryNames {
			rel := path.Join(dir, name)
			f, err := t.read(rel)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				setup.Warnings = append(setup.Warnings, rel+" was left out: it is not a readable regular file of the repository")
			}
			if err != nil || ownErr == nil && os.SameFile(f.info, own) || f.same(delivered) {
				continue
			}
			delivered = append(delivered, f)
			body := t.withoutImports(f)
			if body == "" {
				continue
			}
			head := fmt.Sprintf("--- %s (for directory: %s) ---\n", f.rel, dir)
			body += "\n"
			if room := instructions.MaxBytes - len(text) - len(head); len(body) > room {
				setup.Warnings = append(setup.Warnings, fmt.Sprintf("%s was cut: all instructions together may have %d bytes", f.rel, instructions.MaxBytes))
				body = cut(body, room)
			}
			if body != "" {
				text += head + body
			}
		}
	}
	return text
}

// cut returns whole lines of body and a line that reports the cut, in at most room
// bytes; "" if that does not fit.
func cut(body string, room int) string {
	const mark = "[cut here]\n"
	room -= len(mark)
	if room <= 0 {
		return ""
	}
	return body[:strings.LastIndexByte(body[:min(room, len(body))], '\n')+1] + mark
}

// withoutImports returns the text of a CLAUDE.md without the lines that import
// an AGENTS.md of the tree; "" if only comments remain.
func (t *tree) withoutImports(f file) string {
	var kept strings.Builder
	for line := range strings.Lines(string(f.body)) {
		if target, ok := strings.CutPrefix(strings.TrimSpace(line), "@"); ok && t.imports(f, target) {
			continue
		}
		kept.WriteString(line)
	}
	text := strings.TrimSpace(kept.String())
	if withoutComments(text) == "" {
		return ""
	}
	return text + "\n"
}

func (t *tree) imports(f file, target string) bool {
	rel := path.Join(path.Dir(f.rel), target)
	return slices.ContainsFunc(t.agents, func(a file) bool { return a.rel == rel })
}

// withoutComments returns text without HTML comments and surrounding space.
func withoutComments(text string) string {
	var rest strings.Builder
	for {
		before, after, found := strings.Cut(text, "<!--")
		rest.WriteString(before)
		if !found {
			break
		}
		_, text, _ = strings.Cut(after, "-->")
	}
	return strings.TrimSpace(rest.String())
}
