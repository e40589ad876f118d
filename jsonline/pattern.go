package jsonline

import (
	"bytes"
	"unsafe"
)

// A Pattern recognizes lines that differ from a learned line only in some strings,
// as the pieces of a message do, without reading them member by member. The zero
// value matches nothing. It is used by one goroutine.
type Pattern struct {
	parts [][]byte // the bytes before, between and after the strings
}

// maxPattern bounds the lines that are learned, in bytes.
const maxPattern = 4 << 10

// Learn makes p match line, which is JSON, and all lines that differ from it only
// in the given strings. The strings were taken from line and are given in their
// order there. If one of them is empty, or line has more than 4 KiB, p does not
// change.
func (p *Pattern) Learn(line []byte, strings ...Text) {
	if len(line) > maxPattern {
		return
	}
	var cuts []int
	last := 0
	for _, t := range strings {
		start := int(uintptr(unsafe.Pointer(unsafe.SliceData(t.raw))) - uintptr(unsafe.Pointer(unsafe.SliceData(line))))
		if len(t.raw) == 0 || start < last || start+len(t.raw) > len(line) {
			return
		}
		last = start + len(t.raw)
		cuts = append(cuts, start, last)
	}
	line = bytes.Clone(line)
	p.parts = p.parts[:0]
	last = 0
	for i := 0; i < len(cuts); i += 2 {
		p.parts = append(p.parts, line[last:cuts[i]])
		last = cuts[i+1]
	}
	p.parts = append(p.parts, line[last:])
}

// Match reports whether line is like the learned one, and sets strings to those of
// line. strings must have as many elements as were learned.
func (p *Pattern) Match(line []byte, strings []Text) bool {
	if len(p.parts) != len(strings)+1 {
		return false
	}
	at := 0
	for i := range strings {
		if !bytes.HasPrefix(line[at:], p.parts[i]) {
			return false
		}
		at += len(p.parts[i])
		end, escaped := scanString(line, at)
		if end < 0 {
			return false
		}
		strings[i] = Text{raw: line[at:end:end], escaped: escaped}
		at = end
	}
	return bytes.Equal(line[at:], p.parts[len(strings)])
}
