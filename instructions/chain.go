package instructions

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// MaxBytes is the most text a [Chain] delivers: 256 KiB.
const MaxBytes = 256 << 10

// EndOfText separates the text of a [Chain] from a prompt, for runtimes that take
// instructions only in the prompt.
const EndOfText = "--- end of project instructions ---\n\n"

// A File is one AGENTS.md that applies to a workdir.
type File struct {
	Path string // absolute
	Rel  string // relative to the root, slash-separated
	Size int64  // in bytes, when it was found
}

// A Chain is every AGENTS.md that applies to a workdir, root first. [Discover] makes
// one. It is a value: methods do not change it and may be called by several goroutines
// at once.
type Chain struct {
	Root    string // repository root, absolute; Workdir where there is none
	Workdir string // absolute, without symlinks
	Files   []File
	// Warnings name the files that were left out, with the reason.
	Warnings []string
	// Unchecked reports that the folders below the workdir have too many entries
	// to be checked, see CheckReads. The runner sets it.
	Unchecked bool
}

// Dirs returns the directories from the root down to the workdir, absolute.
func (c Chain) Dirs() []string {
	dirs := c.dirs()
	for i, dir := range dirs {
		dirs[i] = filepath.Join(c.Root, filepath.FromSlash(dir))
	}
	return dirs
}

// dirs returns the same relative to the root: "." first.
func (c Chain) dirs() []string {
	dirs := []string{"."}
	rel, err := filepath.Rel(c.Root, c.Workdir)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return dirs
	}
	dir := ""
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		dir = path.Join(dir, name)
		dirs = append(dirs, dir)
	}
	return dirs
}

// Size returns the sum of the sizes of the files in bytes.
func (c Chain) Size() int64 {
	var sum int64
	for _, f := range c.Files {
		sum += f.Size
	}
	return sum
}

// WithinLimit reports whether, by the sizes found, [Chain.Text] delivers every file
// whole for the same limit.
func (c Chain) WithinLimit(limit int) bool {
	var sum int64
	for _, f := range c.Files {
		sum += part{file: f, size: f.Size}.cost()
	}
	return sum <= int64(clamp(limit))
}

// Text reads the files and joins them, root first, closest last. A line before each
// file names its directory. The text has at most limit bytes, and at most [MaxBytes];
// a limit of zero or less means MaxBytes.
//
// Text that does not fit is cut at the end of a line. The closest files come first:
// the farthest that does not fit whole is delivered in part, and those farther away
// not at all. A line in the text and a warning report each cut. No more bytes are read
// than delivered. A file that can no longer be read is left out with a warning; an
// empty file, and a second name of a file, are left out silently.
//
// The error means that the root cannot be opened.
func (c Chain) Text(limit int) (text string, warnings []string, err error) {
	root, err := os.OpenRoot(c.Root)
	if err != nil {
		return "", nil, fmt.Errorf("instructions: %w", err)
	}
	defer root.Close()
	parts, warnings := c.open(root)
	defer func() {
		for _, p := range parts {
			p.f.Close()
		}
	}()
	limit = clamp(limit)
	share(parts, int64(limit))
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		if err := p.read(); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s was left out: %s", display(p.file.Rel), reason(err)))
			continue
		}
		if p.cut {
			warnings = append(warnings, fmt.Sprintf("%s was cut: %d of %d bytes delivered, as all instructions together may have %d bytes",
				display(p.file.Rel), len(p.body), p.size, limit))
		}
		p.writeTo(&b)
	}
	return b.String(), warnings, nil
}

func clamp(limit int) int {
	if limit <= 0 || limit > MaxBytes {
		return MaxBytes
	}
	return limit
}

// open opens the files that are not empty.
func (c Chain) open(root *os.Root) (parts []part, warnings []string) {
	for _, file := range c.Files {
		f, info, err := openRegular(root, file.Rel)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s was left out: %s", display(file.Rel), reason(err)))
			continue
		}
		p := part{file: file, f: f, info: info, size: info.Size()}
		if p.size == 0 || p.isIn(parts) {
			f.Close()
			continue
		}
		parts = append(parts, p)
	}
	return parts, warnings
}

// A part is one file of a text.
type part struct {
	file File
	f    *os.File
	info os.FileInfo
	size int64 // of the file
	room int64 // most bytes of the file that may be delivered
	cut  bool  // less than size is delivered
	mark bool  // a line says that it was cut
	body []byte
}

func (p part) isIn(parts []part) bool {
	for _, other := range parts {
		if os.SameFile(p.info, other.info) {
			return true
		}
	}
	return false
}

// header is the line before the file.
func (p part) header() string {
	return fmt.Sprintf("--- %s (for directory: %s) ---\n", display(p.file.Rel), display(path.Dir(p.file.Rel)))
}

// marker is the line after a truncated file.
func (p part) marker(delivered int64) string {
	return fmt.Sprintf("[%s cut here: %d of %d bytes delivered]\n", display(p.file.Rel), delivered, p.size)
}

// cost is the most bytes the whole file needs: header, body, the line break it
// may lack and the empty line after it.
func (p part) cost() int64 { return int64(len(p.header())) + p.size + 2 }

// overhead is the size of a truncated file without its body.
func (p part) overhead() int64 { return int64(len(p.header())+len(p.marker(p.size))) + 1 }

// share decides how much of each part is delivered.
func share(parts []part, limit int64) {
	var whole, overheads int64
	for i := range parts {
		whole += parts[i].cost()
		overheads += parts[i].overhead()
	}
	if whole <= limit {
		for i := range parts {
			parts[i].room = parts[i].size
		}
		return
	}
	// The markers of files that are left out must not displace the closest one:
	// there the warnings alone report them.
	mark := overheads <= limit/2
	left := limit
	if mark {
		left -= overheads
	}
	full := false
	for i := len(parts) - 1; i >= 0; i-- {
		p := &parts[i]
		own := p.overhead()
		if mark {
			left += own // it was set aside
		}
		switch {
		case !full && p.cost() <= left:
			p.room = p.size
			left -= p.cost()
		case !full && own < left:
			p.room, p.cut, p.mark = left-own, true, true
			full, left = true, 0
		default:
			p.cut, p.mark = true, mark
			full = true
			if mark {
				left -= own
			}
		}
	}
}

// read reads the part to deliver, up to the end of a line.
func (p *part) read() error {
	want := min(p.room, p.size)
	if want == 0 {
		return nil
	}
	p.body = make([]byte, want)
	n, err := io.ReadFull(p.f, p.body)
	p.body = p.body[:n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // it has become shorter
	}
	if p.cut {
		p.body = p.body[:lastLineEnd(p.body)]
	}
	return err
}

func lastLineEnd(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }

func (p *part) writeTo(b *strings.Builder) {
	if p.cut && !p.mark {
		return
	}
	b.WriteString(p.header())
	b.Write(p.body)
	if n := len(p.body); n > 0 && p.body[n-1] != '\n' {
		b.WriteByte('\n')
	}
	if p.mark {
		b.WriteString(p.marker(int64(len(p.body))))
	}
	b.WriteByte('\n')
}
