package soak

import (
	"bytes"
	"fmt"
	"io"
)

// numbered returns a line with a number in it.
func numbered(before, between, fill string, times int, after string) Line {
	return Line{Before: []byte(before), Between: []byte(between), Fill: []byte(fill), Times: times, After: []byte(after)}
}

// plain returns a line without a number.
func plain(text string) Line { return Line{Before: []byte(text), Plain: true} }

// A comparison is written to and compares that with an output.
type comparison struct {
	want io.Reader
	buf  []byte
	at   int64
}

func newComparison(want Output) *comparison {
	return &comparison{want: want.Reader(), buf: make([]byte, 32<<10)}
}

func (c *comparison) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, err := io.ReadFull(c.want, c.buf[:min(len(rest), len(c.buf))])
		if n == 0 {
			return 0, fmt.Errorf("%.200q too much after %d bytes (%v)", rest, c.at, err)
		}
		if want := c.buf[:n]; !bytes.Equal(rest[:n], want) {
			i := 0
			for rest[i] == want[i] {
				i++
			}
			from := max(i-100, 0)
			return 0, fmt.Errorf("at %d: have %.300q, want %.300q", c.at+int64(i), rest[from:], want[from:])
		}
		c.at += int64(n)
		rest = rest[n:]
	}
	return len(b), nil
}

// end returns an error when something is missing.
func (c *comparison) end() error {
	if n, _ := io.ReadFull(c.want, c.buf[:200]); n > 0 {
		return fmt.Errorf("it ends after %d bytes, before %.200q", c.at, c.buf[:n])
	}
	return nil
}
