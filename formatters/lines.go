package formatters

import (
	"bytes"
	"math/bits"
	"sync"
)

// MaxLine is the default of [Lines.Max]: 16 MiB.
const MaxLine = 16 << 20

// headSize is how much of a line over the maximum is handed over.
const headSize = 64 << 10

// A buffer of more than ownBuffer bytes is shared between line splitters: others
// use it between two lines, unless it is larger than sharedBuffer.
const (
	ownBuffer    = 8 << 10
	sharedBuffer = ownBuffer << len(buffers)
)

// buffers are those not in use at the moment, of *[]byte: each pool
// has those of one size, twice that of the one before.
var buffers [8]sync.Pool

// sharedSize returns which of the buffers holds n bytes, more than ownBuffer and at
// most sharedBuffer.
func sharedSize(n int) int { return bits.Len(uint(n-1)/ownBuffer) - 1 }

// Lines splits what is written to it into lines and hands each to Handle. It
// never fails by itself, whatever the bytes are, and holds at most one
// unfinished line.
//
// A line ends with a line feed; the line feed and one carriage return before it
// are not part of it. Empty lines are lines. Close hands over what follows the
// last line feed.
//
// Lines is used by one goroutine at a time.
type Lines struct {
	// Handle takes one line. The slice is valid only during the call. A line
	// over the maximum comes once, after its end, with truncated set and its
	// first 64 KiB at most; size is always the length of the whole line in
	// bytes. An error ends the splitting: Write and Close return it from then
	// on and hand over nothing more. Required.
	Handle func(line []byte, truncated bool, size int64) error

	// Max is the longest line that is handed over whole, in bytes. Zero or less
	// means MaxLine.
	Max int

	// brief is asked about a line of which more is to come, when it begins. If it
	// reports true, Handle needs no more of it than this head, unless the line is
	// over the maximum.
	brief func(head []byte) bool

	cut  bool   // the rest of the unfinished line is not kept
	buf  []byte // the unfinished line; its head once it is over the maximum
	size int64  // of the unfinished line
	last byte   // of the unfinished line
	err  error
}

// Write splits p. It returns len(p) and nil, or the error of Handle with the
// number of bytes up to the end of the line that Handle refused.
func (l *Lines) Write(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	rest := p
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			if l.size == 0 && l.brief != nil && len(rest) >= SkimSize && l.brief(rest) {
				l.hold(rest[:SkimSize])
				l.cut, rest = true, rest[SkimSize:]
			}
			l.hold(rest)
			return len(p), nil
		}
		line := rest[:i]
		rest = rest[i+1:]
		if l.size == 0 {
			if i > 0 && line[i-1] == '\r' {
				line = line[:i-1]
			}
			l.deliver(line, int64(len(line)))
		} else {
			l.hold(line)
			l.finish(true)
		}
		if l.err != nil {
			return len(p) - len(rest), l.err
		}
	}
}

// Close hands over an unfinished line. It returns the error of Handle, from
// now or before. A closed Lines can be written to again.
func (l *Lines) Close() error {
	if l.err == nil && l.size > 0 {
		l.finish(false)
	}
	return l.err
}

// hold adds part to the unfinished line.
func (l *Lines) hold(part []byte) {
	if len(part) == 0 {
		return
	}
	l.size += int64(len(part))
	l.last = part[len(part)-1]
	if l.cut {
		return
	}
	if l.size <= int64(l.max())+1 { // the carriage return is not known as such yet
		l.grow(len(part))
		l.buf = append(l.buf, part...)
		return
	}
	head := min(headSize, l.max())
	if len(l.buf) < head {
		l.buf = append(l.buf, part[:min(len(part), head-len(l.buf))]...)
	} else if cap(l.buf) > sharedBuffer {
		l.buf = append(make([]byte, 0, head), l.buf[:head]...)
	}
}

// grow makes room for n more bytes: twice as much each time, but no more than the
// longest line needs.
func (l *Lines) grow(n int) {
	need := len(l.buf) + n
	if need <= cap(l.buf) {
		return
	}
	old := l.buf
	switch {
	case need <= ownBuffer:
		l.buf = append(make([]byte, 0, min(max(2*cap(old), need), ownBuffer)), old...)
	case need <= sharedBuffer:
		i := sharedSize(need)
		if shared, ok := buffers[i].Get().(*[]byte); ok {
			l.buf = append((*shared)[:0], old...)
		} else {
			l.buf = append(make([]byte, 0, ownBuffer<<(i+1)), old...)
		}
	default:
		size := max(2*cap(old), need)
		if most := l.max() + 1; size > most {
			size = max(most, need)
		}
		l.buf = append(make([]byte, 0, size), old...)
	}
	release(old)
}

// release lets others have a buffer.
func release(buf []byte) {
	if n := cap(buf); n > ownBuffer && n <= sharedBuffer && n == ownBuffer<<(sharedSize(n)+1) {
		buffers[sharedSize(n)].Put(&buf)
	}
}

// finish hands over the unfinished line, which ended with a line feed or with
// the input.
func (l *Lines) finish(fed bool) {
	size, line := l.size, l.buf
	if fed && l.last == '\r' {
		size--
		line = line[:min(int64(len(line)), size)]
	}
	l.size, l.cut = 0, false
	l.deliver(line, size)
	if cap(l.buf) > ownBuffer {
		release(l.buf)
		l.buf = nil
	} else {
		l.buf = l.buf[:0]
	}
}

func (l *Lines) deliver(line []byte, size int64) {
	truncated := size > int64(l.max())
	if truncated {
		line = line[:min(len(line), headSize, l.max())]
	}
	l.err = l.Handle(line, truncated, size)
}

func (l *Lines) max() int {
	if l.Max <= 0 {
		return MaxLine
	}
	return l.Max
}
