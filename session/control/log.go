package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/jsonline"
)

// logSize is when a file of the log is full, in bytes.
const logSize = 8 << 20

// eventLog is what happened in a session, in files of its folder. Goroutines append;
// any number of cursors read.
type eventLog struct {
	folder string
	held   *statefile.Dir // the folder, whatever takes its place
	limit  int64

	mu         sync.Mutex
	file       *os.File
	generation int
	size       int64
	last       int64         // number of the last record
	changed    chan struct{} // closed at the next one
	finished   bool          // there will be none
}

func logName(generation int) string { return fmt.Sprintf("events.%d.ndjson", generation) }

// generations returns the numbers of the files in folder, oldest first.
func generations(folder string) []int {
	dir, err := statefile.OpenDir(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	return generationsIn(dir)
}

func generationsIn(dir *statefile.Dir) (list []int) {
	entries, _, _ := dir.Entries(maxEntries) // what cannot be read has no records
	for _, entry := range entries {
		var n int
		if _, err := fmt.Sscanf(entry.Name(), "events.%d.ndjson", &n); err == nil && entry.Name() == logName(n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// openLog opens the log in folder to continue it.
func openLog(folder string, limit int64) (*eventLog, error) {
	l := &eventLog{folder: folder, limit: limit, changed: make(chan struct{})}
	var err error
	if l.held, err = statefile.OpenDir(folder); err != nil {
		return nil, err
	}
	list := generationsIn(l.held)
	for i := len(list) - 1; i >= 0 && l.last == 0 && err == nil; i-- {
		err = eachNumber(l.held, list[i], func(n int64) { l.last = max(l.last, n) })
	}
	if len(list) > 0 {
		l.generation = list[len(list)-1]
	}
	if err == nil {
		err = l.next()
	}
	if err != nil {
		l.held.Close()
		return nil, err
	}
	return l, nil
}

// eachNumber calls each with the numbers of the whole records of a file.
func eachNumber(dir *statefile.Dir, generation int, each func(int64)) error {
	f, err := dir.Open(logName(generation))
	if err != nil {
		return err
	}
	defer f.Close()
	for r := newLines(f); ; {
		line, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h := headOf(line); h.Number > 0 {
			each(h.Number)
		}
	}
}

// maxRecord bounds a line that is read, in bytes. What is longer is left out.
const maxRecord = 4 * formatters.MaxLine

// lines reads lines of bounded length.
type lines struct {
	from *bufio.Reader
	line []byte // what was read of an unfinished one
	over bool   // it is too long
}

func newLines(f *os.File) *lines { return &lines{from: bufio.NewReaderSize(f, 64<<10)} }

// next returns a line with its break. One that has no end yet is io.EOF, and
// continued by the next call.
func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.from.ReadSlice('\n')
		if l.over = l.over || len(l.line)+len(part) > maxRecord; l.over {
			l.line = nil
		} else {
			l.line = append(l.line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil:
			return nil, err
		case l.over:
			l.over = false
		default:
			line := l.line
			l.line = nil
			return line, nil
		}
	}
}

// next begins another file and removes the oldest ones, while what is left is at
// least one file full.
func (l *eventLog) next() error {
	f, err := l.held.Create(logName(l.generation + 1))
	if err != nil {
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size = f, 0
	l.generation++
	var kept int64
	for _, old := range slices.Backward(generationsIn(l.held)) {
		if kept >= l.limit {
			_ = l.held.Remove(logName(old)) // one that stays is removed the next time
			continue
		}
		if f, err := l.held.Open(logName(old)); err == nil {
			if info, err := f.Stat(); err == nil {
				kept += info.Size()
			}
			f.Close()
		}
	}
	return nil
}

// append writes r. A record that cannot be written is lost: its number is missing.
func (l *eventLog) append(r LogRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished {
		return
	}
	l.last++
	r.Number, r.Time = l.last, time.Now().UTC()
	if line, err := json.Marshal(r); err == nil {
		l.write(append(line, '\n'))
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *eventLog) write(line []byte) {
	if l.size > 0 && l.size+int64(len(line)) > l.limit {
		_ = l.next() // where that is not possible the file grows
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil && n > 0 { // a part of a line ends a file
		_ = l.next()
	}
}

// finish ends the log: there are no more records.
func (l *eventLog) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished {
		return
	}
	l.finished = true
	close(l.changed)
	l.file.Close()
	l.held.Close()
}

// state returns the number of the last record, a channel that is closed when
// there is another one, and whether there will be none.
func (l *eventLog) state() (last int64, changed <-chan struct{}, finished bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.changed, l.finished
}

// end returns a cursor behind the last record.
func (l *eventLog) end() (*cursor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &cursor{folder: l.folder, generation: l.generation, next: l.last + 1}
	if err := c.open(); err != nil {
		return nil, err
	}
	_, err := c.file.Seek(l.size, io.SeekStart)
	return c, err
}

// A cursor reads the records of a log, in order. Its user says up to which number
// there are any.
type cursor struct {
	folder     string
	generation int
	next       int64 // number of the record to read
	file       *os.File
	lines      *lines
}

// lastRecords returns a cursor at the last n records of the log in folder, whose
// last number it returns; all of them when n is negative.
func lastRecords(folder string, n int) (*cursor, int64, error) {
	list := generations(folder)
	if len(list) == 0 {
		return &cursor{folder: folder, next: 1}, 0, nil
	}
	dir, err := statefile.OpenDir(folder)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	var first, last int64
	var numbers []int64 // the last n, and some before
	for _, g := range list {
		err := eachNumber(dir, g, func(number int64) {
			last = number
			if first == 0 {
				first = number
			}
			if n <= 0 {
				return
			}
			if numbers = append(numbers, number); len(numbers) > 1024 && len(numbers)/2 >= n {
				numbers = append(numbers[:0], numbers[len(numbers)-n:]...)
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
	}
	c := &cursor{folder: folder, generation: list[0], next: 1}
	switch {
	case last == 0:
	case n < 0:
		c.next = first
	case n == 0:
		c.next = last + 1
	default:
		c.next = numbers[max(0, len(numbers)-n)]
	}
	return c, last, c.open()
}

// head is what is needed to pass a record on.
type head struct {
	Number int64
	Turn   int
}

// headOf reads the head of a record, which is at its start: the rest can be long. A
// line that is not a record has the number 0.
func headOf(line []byte) (h head) {
	if len(line) < 2 || line[len(line)-2] != '}' {
		return h
	}
	r := jsonline.New(line)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "number":
			h.Number = r.Int()
		case "turn":
			h.Turn = int(r.Int())
		default:
			return h
		}
	}
	return h
}

func (c *cursor) open() error {
	f, err := statefile.Open(filepath.Join(c.folder, logName(c.generation)))
	if err != nil {
		return err
	}
	if c.file != nil {
		c.file.Close()
	}
	c.file, c.lines = f, newLines(f)
	return nil
}

// read returns the next record up to the number last, without its line break, and
// how many before it are lost. There is none when line is empty.
func (c *cursor) read(last int64) (line []byte, h head, missed int64, err error) {
	for c.next <= last && c.file != nil {
		line, err := c.lines.next()
		if err == io.EOF {
			more, err := c.advance()
			if err != nil {
				return nil, head{}, 0, err
			}
			if !more {
				break
			}
			continue
		}
		if err != nil {
			return nil, head{}, 0, err
		}
		h := headOf(line)
		if h.Number < c.next {
			continue // it was before the start, or is not a record
		}
		missed = h.Number - c.next
		c.next = h.Number + 1
		return line[:len(line)-1], h, missed, nil
	}
	if missed = last + 1 - c.next; missed > 0 {
		c.next = last + 1
		return nil, head{}, missed, nil
	}
	return nil, head{}, 0, nil
}

// advance continues with the next file and reports whether there is one.
func (c *cursor) advance() (bool, error) {
	for _, g := range generations(c.folder) {
		if g <= c.generation {
			continue
		}
		c.generation = g
		err := c.open()
		if errors.Is(err, fs.ErrNotExist) {
			return c.advance() // it has just been removed
		}
		return err == nil, err
	}
	return false, nil
}

func (c *cursor) close() {
	if c != nil && c.file != nil {
		c.file.Close()
	}
}
