package main

import "strings"

// repeats tells apart two ways of sending an answer: each chunk adds to the last,
// or each repeats all of it and goes on. One chunk does not tell, and even two may
// look alike ("1", "10"), so the second and what looks like it are held back until
// the next one decides.
type repeats struct {
	mode mode
	held []stretch
	size int // of what is held, in bytes
}

// A stretch is a chunk that came several times, one after the other.
type stretch struct {
	chunk string
	times int
}

type mode int

const (
	undecided mode = iota
	adding
	repeating
)

// next takes a chunk and returns what it adds to text.
func (r *repeats) next(text, chunk string) string {
	switch {
	case r.mode == adding || text == "":
		return chunk
	case r.mode == repeating:
		return r.cut(text, chunk)
	}
	last := text
	if n := len(r.held); n > 0 {
		last = r.held[n-1].chunk
	}
	switch grown := last != text; {
	case !strings.HasPrefix(chunk, last):
		all := r.all()
		*r = repeats{mode: adding}
		return all + chunk
	case grown && len(chunk) > len(last):
		*r = repeats{mode: repeating}
		return chunk[len(text):]
	}
	r.hold(chunk)
	return ""
}

// hold holds a chunk back. A server can send the same one without end.
func (r *repeats) hold(chunk string) {
	r.size += len(chunk)
	if n := len(r.held); n > 0 && r.held[n-1].chunk == chunk {
		r.held[n-1].times++
		return
	}
	r.held = append(r.held, stretch{chunk, 1})
}

// all returns all that is held back.
func (r *repeats) all() string {
	var all strings.Builder
	for _, h := range r.held {
		all.WriteString(strings.Repeat(h.chunk, h.times))
	}
	return all.String()
}

// cut returns what chunk, which repeats the answer, adds to text.
func (r *repeats) cut(text, chunk string) string {
	if more, ok := strings.CutPrefix(chunk, text); ok {
		return more
	}
	if strings.HasPrefix(text, chunk) {
		return ""
	}
	return chunk
}

// settled takes note that the server itself says what the whole is.
func (r *repeats) settled() { *r = repeats{mode: adding} }

// rest returns what is still held back when the answer is over; the text so far
// has size bytes. All of it repeats that text, or nothing would be held.
func (r *repeats) rest(size int) string {
	if len(r.held) == 0 {
		return ""
	}
	last := r.held[len(r.held)-1].chunk
	r.held, r.size = nil, 0
	return last[size:]
}
