// Package corpus makes what agents print during long runs, for benchmarks:
// NDJSON lines with the members, the mix and the sizes of recorded runs, as
// many as wanted. Most lines are small pieces of messages; most bytes are
// results of tools: source code, logs, diffs, with their escapes, characters
// outside ASCII and the escape sequences of terminals.
//
// Equal arguments give equal bytes, with every version of Go.
package corpus

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// A Shape is whose lines are made.
type Shape string

// The shapes.
const (
	Claude Shape = "claude"
	Codex  Shape = "codex"
	Gemini Shape = "gemini"
)

// Shapes lists the shapes.
func Shapes() []Shape { return []Shape{Claude, Codex, Gemini} }

// Lines is how many lines of any shape are about 200 MB.
const Lines = 100_000

// Write writes a successful run of that many lines, at least two, to w: its
// start first, its result last. It returns the number of bytes.
func Write(w io.Writer, shape Shape, lines int, seed uint64) (int64, error) {
	g := &generator{out: bufio.NewWriterSize(w, 1<<20), random: random(seed), left: lines}
	var start, turn, end func()
	switch shape {
	case Claude:
		c := &claude{generator: g}
		start, turn, end = c.start, c.turn, c.end
	case Codex:
		c := &codex{generator: g}
		start, turn, end = c.start, c.turn, c.end
	case Gemini:
		c := &gemini{generator: g}
		start, turn, end = c.start, c.turn, c.end
	default:
		return 0, fmt.Errorf("corpus: no shape %q", shape)
	}
	if lines < 2 {
		return 0, fmt.Errorf("corpus: a run has at least two lines, not %d", lines)
	}
	start()
	for g.left > 1 {
		turn()
	}
	end()
	if err := g.out.Flush(); err != nil {
		return g.size, fmt.Errorf("corpus: %w", err)
	}
	return g.size, nil
}

// Bytes returns what [Write] writes.
func Bytes(shape Shape, lines int, seed uint64) []byte {
	var b bytes.Buffer
	if _, err := Write(&b, shape, lines, seed); err != nil {
		panic(err) // a buffer takes everything, so the arguments are wrong
	}
	return b.Bytes()
}

// A generator gathers one line and writes it.
type generator struct {
	out    *bufio.Writer
	random random
	line   []byte
	left   int // lines to be written
	size   int64
}

func (g *generator) add(parts ...string) {
	for _, part := range parts {
		g.line = append(g.line, part...)
	}
}

func (g *generator) number(n int) { g.line = strconv.AppendInt(g.line, int64(n), 10) }

// end writes the line gathered. The last line of a run is its result's, so a
// turn that comes to it is cut there.
func (g *generator) end() {
	if g.left > 1 {
		g.flush()
	}
	g.line = g.line[:0]
}

// flush writes the line gathered, whatever it is. Errors stay in the writer.
func (g *generator) flush() {
	g.line = append(g.line, '\n')
	g.out.Write(g.line)
	g.size += int64(len(g.line))
	g.line = g.line[:0]
	g.left--
}

// id adds n hexadecimal digits.
func (g *generator) id(n int) {
	for range n {
		g.line = append(g.line, "0123456789abcdef"[g.random.below(16)])
	}
}

// uuid adds a random UUID.
func (g *generator) uuid() {
	for i, n := range []int{8, 4, 4, 4, 12} {
		if i > 0 {
			g.line = append(g.line, '-')
		}
		g.id(n)
	}
}

// random is a generator of pseudo-random numbers (SplitMix64) whose sequence no
// library changes.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// between returns a number from low to high.
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }

// percent is true n times of a hundred.
func (r *random) percent(n int) bool { return r.below(100) < n }

// outputs is how large results of tools are, in bytes of JSON: many are small,
// a few are whole files and logs.
var outputs = []struct{ percent, low, high int }{
	{12, 0, 40}, {28, 40, 800}, {35, 800, 6_000}, {18, 6_000, 30_000}, {6, 30_000, 100_000}, {1, 100_000, 400_000},
}

// outputSize returns the size of a result of a tool.
func (r *random) outputSize() int {
	n := r.below(100)
	for _, o := range outputs {
		if n < o.percent {
			return r.between(o.low, o.high)
		}
		n -= o.percent
	}
	return 0
}
