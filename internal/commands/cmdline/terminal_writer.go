package cmdline

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// A terminalWriter is the only way to a terminal. What could drive it, see
// [jsonline.IsControl], is shown as an escape instead, so no text of an agent, a
// repository or a stored preference reaches it, whichever command prints it. Only
// styled passes control sequences.
type terminalWriter struct {
	w io.Writer

	mu     sync.Mutex
	held   []byte // the beginning of a character that may be a control
	buffer []byte
}

// ToTerminal returns w, or a terminalWriter where it is a terminal.
func ToTerminal(w io.Writer, terminal bool) io.Writer {
	if !terminal {
		return w
	}
	return &terminalWriter{w: w}
}

// IsTerminalWriter reports whether w is a terminal.
func IsTerminalWriter(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && IsTerminal(f)
}

// Write writes b in one write. A control character that is spread over several
// writes is found too.
func (t *terminalWriter) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer = t.buffer[:0]
	t.add(b)
	return len(b), t.pass()
}

// styled writes text to w, every other element, from the first one on, as a control
// sequence of ours.
func styled(w io.Writer, elements ...string) {
	t, ok := w.(*terminalWriter)
	if !ok {
		var all bytes.Buffer
		for _, e := range elements {
			all.WriteString(e)
		}
		_, _ = w.Write(all.Bytes()) // a screen that is gone
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer = t.buffer[:0]
	for i, e := range elements {
		if i%2 == 0 {
			t.end()
			t.buffer = append(t.buffer, e...)
		} else {
			t.add([]byte(e))
		}
	}
	_ = t.pass()
}

// end shows the beginning of a character that nothing completes.
func (t *terminalWriter) end() {
	for _, c := range t.held {
		t.buffer = appendByte(t.buffer, c)
	}
	t.held = t.held[:0]
}

func (t *terminalWriter) pass() error {
	if len(t.buffer) == 0 {
		return nil
	}
	_, err := t.w.Write(t.buffer)
	if cap(t.buffer) > keptBuffer {
		t.buffer = nil
	}
	return err
}

const keptBuffer = 256 << 10

func (t *terminalWriter) add(b []byte) {
	if len(t.held) > 0 {
		b = append(t.held, b...)
		t.held = nil
	}
	for i := 0; i < len(b); {
		begun := i
		for i < len(b) && b[i] < 0x7f && (b[i] >= ' ' || b[i] == '\n' || b[i] == '\t') {
			i++
		}
		t.buffer = append(t.buffer, b[begun:i]...)
		if i == len(b) {
			return
		}
		if !utf8.FullRune(b[i:]) {
			t.held = append(t.held[:0], b[i:]...)
			return
		}
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			t.buffer = appendByte(t.buffer, b[i])
		case r == '\r' && i+1 < len(b) && b[i+1] == '\n':
			t.buffer = append(t.buffer, '\r')
		case jsonline.IsControl(r):
			t.buffer = fmt.Appendf(t.buffer, `\u%04x`, r)
		default:
			t.buffer = append(t.buffer, b[i:i+n]...)
		}
		i += n
	}
}

// appendByte appends a byte that is not UTF-8. Terminals take some for controls.
func appendByte(dst []byte, c byte) []byte {
	if c < 0xa0 {
		return fmt.Appendf(dst, `\x%02x`, c)
	}
	return append(dst, c)
}
