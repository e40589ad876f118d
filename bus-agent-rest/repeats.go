package main

import "strings"

// repeats extracts the new text from the chunks of an answer, whether they hold
// increments or the whole answer so far. The first chunks can look like either
// ("1", "10"), so all but the first are held back until one of them decides.
type repeats struct {
	mode mode
	held []heldChunk
	size int // of held, in bytes
}

// A heldChunk is a chunk that arrived several times in a row.
type heldChunk struct {
	text  string
	times int
}

type mode int

const (
	undecided mode = iota
	increments
	cumulative
)

// next returns what chunk adds to text, the answer so far.
func (r *repeats) next(text, chunk string) string {
	switch {
	case r.mode == increments || text == "":
		return chunk
	case r.mode == cumulative:
		return r.cut(text, chunk)
	}
	last := text
	if n := len(r.held); n > 0 {
		last = r.held[n-1].text
	}
	switch grown := last != text; {
	case !strings.HasPrefix(chunk, last):
		all := r.all()
		*r = repeats{mode: increments}
		return all + chunk
	case grown && len(chunk) > len(last):
		*r = repeats{mode: cumulative}
		return chunk[len(text):]
	}
	r.hold(chunk)
	return ""
}

// hold holds chunk back. It counts repetitions, since a server can send the same
// chunk any number of times.
func (r *repeats) hold(chunk string) {
	r.size += len(chunk)
	if n := len(r.held); n > 0 && r.held[n-1].text == chunk {
		r.held[n-1].times++
		return
	}
	r.held = append(r.held, heldChunk{chunk, 1})
}

// all returns the chunks that are held back, as increments.
func (r *repeats) all() string {
	var all strings.Builder
	for _, h := range r.held {
		all.WriteString(strings.Repeat(h.text, h.times))
	}
	return all.String()
}

// cut returns what chunk, the whole answer, adds to text.
func (r *repeats) cut(text, chunk string) string {
	if more, ok := strings.CutPrefix(chunk, text); ok {
		return more
	}
	if strings.HasPrefix(text, chunk) {
		return ""
	}
	return chunk
}

// flush returns what the held chunks add at the end of an answer that has size
// bytes so far. All of them begin with that answer.
func (r *repeats) flush(size int) string {
	if len(r.held) == 0 {
		return ""
	}
	last := r.held[len(r.held)-1].text
	r.held, r.size = nil, 0
	return last[size:]
}
