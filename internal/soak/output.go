// Package soak has the tests of large, long and many runs; make soak runs them,
// and their small versions are ordinary tests.
//
// The package itself describes output that an agent prints and a test compares
// byte by byte with what arrives, without either of them holding it.
package soak

import "io"

// A Line is Before, then a number of twelve digits, then Fill as often as Times
// says, then After. It need not hold a line break.
type Line struct {
	Before  []byte
	Between []byte
	Fill    []byte
	Times   int
	After   []byte
	Plain   bool // without the number
}

// digits is the length of the number in a line.
const digits = 12

// Size returns the length of the line in bytes.
func (l *Line) Size() int64 {
	size := int64(len(l.Before)+len(l.Between)+len(l.After)) + int64(len(l.Fill))*int64(l.Times)
	if !l.Plain {
		size += digits
	}
	return size
}

// A Part is a group of lines, as often as Count says. The number in the lines
// counts the groups from 0.
type Part struct {
	Count int64
	Lines []Line
}

// An Output is all that an agent prints.
type Output []Part

// Size returns its length in bytes.
func (o Output) Size() (size int64) {
	for _, part := range o {
		for i := range part.Lines {
			size += part.Count * part.Lines[i].Size()
		}
	}
	return size
}

// Reader returns a reader of the output.
func (o Output) Reader() io.Reader { return &reader{rest: o} }

// minBlock is how much of a fill is made ready, in bytes.
const minBlock = 64 << 10

// reader makes one line after the other, each in three pieces.
type reader struct {
	rest   Output
	number int64 // of the group
	line   int   // in the group
	ready  []pieces

	piece  int   // of the line
	offset int64 // in the piece
}

// pieces is a line, made ready.
type pieces struct {
	head   []byte
	number int // where it is in head; -1 for none
	block  []byte
	fill   int64 // how many bytes of the block, repeated
	tail   []byte
}

func prepare(l *Line) pieces {
	p := pieces{head: append([]byte(nil), l.Before...), number: -1, fill: int64(len(l.Fill)) * int64(l.Times), tail: l.After}
	if !l.Plain {
		p.number = len(p.head)
		p.head = append(p.head, make([]byte, digits)...)
	}
	p.head = append(p.head, l.Between...)
	for len(l.Fill) > 0 && int64(len(p.block)) < min(p.fill, minBlock) {
		p.block = append(p.block, l.Fill...)
	}
	return p
}

func (r *reader) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(r.rest) == 0 {
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		n += r.read(b[n:])
	}
	return n, nil
}

// read reads from one piece and then from the next.
func (r *reader) read(b []byte) (n int) {
	part := &r.rest[0]
	if r.ready == nil {
		r.ready = make([]pieces, len(part.Lines))
		for i := range part.Lines {
			r.ready[i] = prepare(&part.Lines[i])
		}
	}
	if len(r.ready) == 0 || r.number == part.Count {
		r.rest, r.ready, r.number = r.rest[1:], nil, 0
		return 0
	}
	p := &r.ready[r.line]
	end := false
	switch r.piece {
	case 0:
		if r.offset == 0 {
			p.setNumber(r.number)
		}
		n = copy(b, p.head[r.offset:])
		end = r.offset+int64(n) == int64(len(p.head))
	case 1:
		if p.fill > 0 {
			from := r.offset % int64(len(p.block))
			n = copy(b, p.block[from:min(int64(len(p.block)), from+p.fill-r.offset)])
		}
		end = r.offset+int64(n) == p.fill
	case 2:
		n = copy(b, p.tail[r.offset:])
		end = r.offset+int64(n) == int64(len(p.tail))
	}
	r.offset += int64(n)
	if !end {
		return n
	}
	r.offset = 0
	if r.piece++; r.piece < 3 {
		return n
	}
	r.piece = 0
	if r.line++; r.line == len(r.ready) {
		r.line = 0
		r.number++
	}
	return n
}

func (p *pieces) setNumber(number int64) {
	if p.number < 0 {
		return
	}
	for i := p.number + digits - 1; i >= p.number; i-- {
		p.head[i] = byte('0' + number%10)
		number /= 10
	}
}
