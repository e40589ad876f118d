package instructions

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/internal/tree"
)

// A Block is a marked block in a text file.
type Block struct {
	Path    string // relative to the workdir, slash-separated
	Name    string // distinguishes the blocks of a file, for example "agents-md"
	Comment Comment
	Text    string // whole lines; a line break is added where the last lacks one
}

// Comment is the comment syntax of a text file.
type Comment string

const (
	CommentHash Comment = "#"
	CommentHTML Comment = "<!--"
)

// AddBlock appends a marked block to a text file, which it creates if there is none.
// Every other byte stays. A file with the same block is not changed; a block with
// another text gets the new text.
//
// A symlink or anything else but a regular file is [ErrNotRegular]; a block that was
// edited is [ErrEdited]. Both leave the file as it is.
func (w *Workspace) AddBlock(b Block) error {
	if err := b.check(); err != nil {
		return err
	}
	had := false
	changed, err := edit(w.bounds(), w.root, b.Path, func(old []byte, newDirs int) ([]byte, error) {
		have, _ := b.find(old)
		had = have != nil
		return b.add(old, w.newDirs(b.Path, newDirs))
	}, w.dryRun)
	if err != nil {
		return fmt.Errorf("adding block %s to %s: %w", b.Name, b.Path, err)
	}
	if changed {
		w.note(b.Path, "block %s, %d bytes", b.Name, len(b.Text))
	}
	if changed && !had {
		w.added(func() error { return w.removeBlock(b) })
	}
	return nil
}

// removeBlock removes exactly what AddBlock added; Text does not matter. A file that
// AddBlock created and that has nothing else is removed, with the directories that
// were made for it. Without such a block it does nothing. A block that was edited is
// [ErrEdited] and stays.
func (w *Workspace) removeBlock(b Block) error {
	if err := b.check(); err != nil {
		return err
	}
	if _, err := removeBlock(w.bounds(), w.root, b, w.dryRun, never); err != nil {
		return fmt.Errorf("removing block %s from %s: %w", b.Name, b.Path, err)
	}
	return nil
}

// never is for what is not shared with other runs.
func never() bool { return false }

func removeBlock(budget *tree.Budget, root *os.Root, b Block, dryRun bool, inUse func() bool) (removed bool, err error) {
	dirs := 0
	removed, err = edit(budget, root, b.Path, func(old []byte, _ int) (data []byte, err error) {
		if inUse() {
			return old, nil
		}
		data, dirs, err = b.remove(old)
		return data, err
	}, dryRun)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if removed && !dryRun {
		removeMade(root, b.Path, dirs)
	}
	return removed, err
}

// check returns mistakes of the runtime's author.
func (b Block) check() error {
	if b.Name == "" || strings.Trim(b.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("the block name %q must match [a-z0-9-]+", b.Name)
	}
	if b.Comment != CommentHash && b.Comment != CommentHTML {
		return fmt.Errorf("%q is not a comment marker", b.Comment)
	}
	return nil
}

func (b Block) add(old []byte, newDirs int) ([]byte, error) {
	have, err := b.find(old)
	if err != nil {
		return nil, err
	}
	fresh := placed{text: b.Text}
	switch {
	case have != nil:
		fresh.made, fresh.join = have.made, have.join
	case old == nil:
		fresh.made = newDirs + 1
	default:
		fresh.join = len(old) > 0 && old[len(old)-1] != '\n'
	}
	if n := len(b.Text); n == 0 || b.Text[n-1] != '\n' {
		fresh.text += "\n"
	}
	var data []byte
	if have == nil {
		data = bytes.Clone(old)
		if fresh.join {
			data = append(data, '\n')
		}
		return append(data, b.render(fresh)...), nil
	}
	data = append(data, old[:have.start]...)
	data = append(data, b.render(fresh)...)
	return append(data, old[have.end:]...), nil
}

// remove returns the content without the block, nil to remove the file, and the number
// of directories that were made for it.
func (b Block) remove(old []byte) (data []byte, dirs int, err error) {
	have, err := b.find(old)
	if err != nil || have == nil {
		return old, 0, err
	}
	before, after := old[:have.start], old[have.end:]
	if have.join && len(after) == 0 && bytes.HasSuffix(before, []byte("\n")) {
		before = before[:len(before)-1]
	}
	if have.made > 0 && len(before)+len(after) == 0 {
		return nil, have.made - 1, nil
	}
	return append(append([]byte{}, before...), after...), 0, nil
}

// placed is a block in a file.
type placed struct {
	start, end int // of begin line to end line
	text       string
	made       int  // 1 for the file and 1 for each directory made; 0 if the file existed
	join       bool // a line break was added before the block
}

// id identifies a block by its content: a copy of a marker, in the text of the block
// or elsewhere, does not match.
func (b Block) id(p placed) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%t\n%s", b.Name, p.made, p.join, p.text))
	return fmt.Sprintf("%x", sum[:8])
}

func (b Block) render(p placed) string {
	id := b.id(p)
	return b.line(fmt.Sprintf("%smade=%d join=%t bytes=%d id=%s", b.prefix(), p.made, p.join, len(p.text), id)) +
		p.text + b.endLine(id)
}

func (b Block) prefix() string { return "bus-agent:begin " + b.Name + " v1 " }

func (b Block) endLine(id string) string {
	return b.line(fmt.Sprintf("bus-agent:end %s id=%s", b.Name, id))
}

func (b Block) line(text string) string {
	if b.Comment == CommentHTML {
		return "<!-- " + text + " -->\n"
	}
	return "# " + text + "\n"
}

// maxBegins bounds the lines that begin a block: the rest of the file is read for each.
const maxBegins = 100

// find returns the last intact block of that name, or nil. If there is only an edited
// one, or more than maxBegins lines that begin one, the error is [ErrEdited].
func (b Block) find(data []byte) (found *placed, err error) {
	edited, begins := false, 0
	for pos := 0; pos < len(data); {
		rest := pos + lineLength(data[pos:])
		p, size, id, ok := b.parseBegin(string(data[pos:rest]))
		if ok {
			begins++
		}
		if begins > maxBegins {
			return nil, ErrEdited
		}
		last := []byte(b.endLine(id))
		if ok && size <= len(data)-rest && bytes.HasPrefix(data[rest+size:], last) {
			p.text = string(data[rest : rest+size])
			if b.id(p) == id {
				p.start, p.end = pos, rest+size+len(last)
				found, pos = &p, p.end
				continue
			}
		}
		edited = edited || ok && bytes.Contains(data[rest:], last)
		pos = rest
	}
	if found == nil && edited {
		return nil, ErrEdited
	}
	return found, nil
}

// parseBegin parses a begin line: the block without its text, which has size bytes.
func (b Block) parseBegin(line string) (p placed, size int, id string, ok bool) {
	head, tail, _ := strings.Cut(b.line(b.prefix()+"|"), "|")
	rest, ok := strings.CutPrefix(line, head)
	rest, ok2 := strings.CutSuffix(rest, tail)
	fields := strings.Fields(rest)
	if !ok || !ok2 || len(fields) != 4 {
		return placed{}, 0, "", false
	}
	value := func(i int, key string) string {
		v, _ := strings.CutPrefix(fields[i], key+"=")
		return v
	}
	var err [3]error
	p.made, err[0] = strconv.Atoi(value(0, "made"))
	p.join, err[1] = strconv.ParseBool(value(1, "join"))
	size, err[2] = strconv.Atoi(value(2, "bytes"))
	id = value(3, "id")
	ok = errors.Join(err[:]...) == nil && p.made >= 0 && size >= 0 && id != ""
	return p, size, id, ok
}

func lineLength(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}
