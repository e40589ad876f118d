// Package capture keeps what an agent says within bounds: the head and the tail
// of an output, and its final answer.
package capture

import "github.com/busdk/bus-agent/agent"

// keptSize is the largest buffer that Reset keeps.
const keptSize = 2 << 20

// A Buffer keeps the first and the last Limit bytes of what is written to it. It
// is used by one goroutine at a time.
type Buffer struct {
	Limit int

	head  []byte
	ring  []byte // the last bytes, from start on, wrapping around
	start int
	size  int64
}

// Write takes the next bytes. It does not fail.
func (b *Buffer) Write(p []byte) (int, error) {
	add(b, p)
	return len(p), nil
}

// WriteString takes the next bytes.
func (b *Buffer) WriteString(s string) { add(b, s) }

func add[T []byte | string](b *Buffer, p T) {
	b.size += int64(len(p))
	if room := b.Limit - len(b.head); room > 0 {
		n := min(room, len(p))
		b.head = append(b.room(b.head, n), p[:n]...)
		p = p[n:]
	}
	if len(p) > b.Limit {
		p = p[len(p)-b.Limit:]
	}
	if room := b.Limit - len(b.ring); room > 0 && len(p) > 0 {
		n := min(room, len(p))
		b.ring = append(b.room(b.ring, n), p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(b.ring[b.start:], p)
		b.start = (b.start + n) % b.Limit
		p = p[n:]
	}
}

// room returns kept with room for n more bytes, as many as there may be at most:
// twice as much each time and never more than the limit.
func (b *Buffer) room(kept []byte, n int) []byte {
	need := len(kept) + n
	if need <= cap(kept) {
		return kept
	}
	return append(make([]byte, 0, min(max(2*cap(kept), need), b.Limit)), kept...)
}

// Reset forgets all and keeps the memory, unless there is much of it.
func (b *Buffer) Reset() {
	if cap(b.head) > keptSize {
		b.head = nil
	}
	b.head, b.ring, b.start, b.size = b.head[:0], nil, 0, 0
}

// Size returns how many bytes were written.
func (b *Buffer) Size() int64 { return b.size }

// Captured returns what is kept, which is valid until Reset.
func (b *Buffer) Captured() agent.Captured {
	tail := append(append([]byte(nil), b.ring[b.start:]...), b.ring[:b.start]...)
	if b.size <= int64(len(b.head)+len(tail)) {
		return agent.Captured{Head: append(b.head[:len(b.head):len(b.head)], tail...), Size: b.size}
	}
	return agent.Captured{Head: b.head, Tail: tail, Size: b.size, Truncated: true}
}
