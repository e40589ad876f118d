// Package excerpt keeps the beginning and the end of long texts.
package excerpt

import (
	"fmt"
	"strings"
	"sync"
)

// noteSize is the room for the note about what is left out, in bytes.
const noteSize = 64

// A Text keeps at most Limit bytes of a text that comes in pieces. Its methods may be
// called concurrently.
type Text struct {
	Limit int // in bytes, at least 1 KiB

	mu         sync.Mutex
	head, tail []byte
	omitted    int
}

// Write adds b. It never fails.
func (x *Text) Write(b []byte) (int, error) { return x.WriteString(string(b)) }

// WriteString adds text. It never fails.
func (x *Text) WriteString(text string) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	size := len(text)
	if room := x.Limit/2 - len(x.head); room > 0 && len(x.tail) == 0 {
		n := min(room, len(text))
		x.head = append(x.head, text[:n]...)
		text = text[n:]
	}
	x.tail = append(x.tail, text...)
	if len(x.tail) > 2*x.tailSize() {
		x.cut()
	}
	return size, nil
}

func (x *Text) tailSize() int { return x.Limit/2 - noteSize }

// cut leaves out what is too much of the end; x.mu is held.
func (x *Text) cut() {
	if n := len(x.tail) - x.tailSize(); n > 0 {
		x.omitted += n
		x.tail = append(x.tail[:0], x.tail[n:]...)
	}
}

// Empty reports whether there is no text.
func (x *Text) Empty() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.head) == 0
}

// Take returns the text as valid UTF-8, with a line in place of what is left out, and
// empties x. A character that is cut by it is left out too.
func (x *Text) Take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cut()
	head, tail, omitted := string(x.head), string(x.tail), x.omitted
	x.head, x.tail, x.omitted = x.head[:0], x.tail[:0], 0
	if omitted == 0 {
		return strings.ToValidUTF8(head+tail, "?")
	}
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[%d bytes left out]\n", omitted) + strings.ToValidUTF8(tail, "")
}
