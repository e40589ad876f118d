package runner

import "github.com/busdk/bus-agent/agent"

// capture keeps the first and the last limit bytes of what is written to it.
type capture struct {
	limit int
	head  []byte
	ring  []byte // the last bytes, from start on, wrapping around
	start int
	size  int64
}

func (c *capture) write(b []byte) { captureAppend(c, b) }

func (c *capture) writeString(s string) { captureAppend(c, s) }

func captureAppend[T []byte | string](c *capture, b T) {
	c.size += int64(len(b))
	if room := c.limit - len(c.head); room > 0 {
		n := min(room, len(b))
		c.head = append(c.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > c.limit {
		b = b[len(b)-c.limit:]
	}
	if room := c.limit - len(c.ring); room > 0 && len(b) > 0 {
		n := min(room, len(b))
		c.ring = append(c.ring, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(c.ring[c.start:], b)
		c.start = (c.start + n) % c.limit
		b = b[n:]
	}
}

// reset empties c and keeps its memory, unless there is much of it.
func (c *capture) reset() {
	if cap(c.head) > keptSize {
		c.head = nil
	}
	c.head, c.ring, c.start, c.size = c.head[:0], nil, 0, 0
}

func (c *capture) captured() agent.Captured {
	tail := append(append([]byte(nil), c.ring[c.start:]...), c.ring[:c.start]...)
	if c.size <= int64(len(c.head)+len(tail)) {
		return agent.Captured{Head: append(c.head[:len(c.head):len(c.head)], tail...), Size: c.size}
	}
	return agent.Captured{Head: c.head, Tail: tail, Size: c.size, Truncated: true}
}
