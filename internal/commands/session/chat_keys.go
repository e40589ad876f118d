package session

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/busdk/bus-agent/internal/unix"
)

const (
	ctrlC     = 3
	backspace = 8
	ctrlU     = 21
	ctrlZ     = 26
	del       = 127
)

func isEnter(key byte) bool { return key == '\r' || key == '\n' }

// A keyPress is a key and how many approval requests were drawn before it was pressed.
type keyPress struct {
	key   byte
	drawn int
}

// keys are what is typed in a terminal. Read reads them while a line is edited, next during
// a turn; what is typed ahead is kept for the next line.
type keys struct {
	in       *os.File
	canceled <-chan struct{}
	over     <-chan struct{} // the agent has ended
	more     chan struct{}   // gets a token when something was typed or the terminal has ended

	mu     sync.Mutex // held from reading the terminal until what was read is in typed
	typed  []keyPress
	drawn  int
	closed bool // the terminal has ended

	ahead       []byte
	interrupted bool // Ctrl-C ended the last line
}

func newKeys(in *os.File, canceled, over <-chan struct{}) *keys {
	k := &keys{in: in, canceled: canceled, over: over, more: make(chan struct{}, 1)}
	go func() {
		for {
			err := k.awaitInput(nil)
			k.mu.Lock()
			if err != nil {
				k.closed = true
			}
			k.take()
			closed := k.closed
			k.mu.Unlock()
			select {
			case k.more <- struct{}{}:
			default:
			}
			if closed {
				return
			}
		}
	}()
	return k
}

// awaitInput waits until a read of the terminal does not block.
func (k *keys) awaitInput(limit *unix.Timeval) error {
	fd := int(k.in.Fd())
	for {
		var set unix.FdSet
		set.Set(fd)
		n, err := unix.Select(fd+1, &set, nil, nil, limit)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}

// take reads what the terminal holds, without waiting.
func (k *keys) take() {
	buffer := make([]byte, 256)
	for !k.closed && k.awaitInput(&unix.Timeval{}) == nil {
		n, err := k.in.Read(buffer)
		for _, key := range buffer[:max(n, 0)] {
			if key == ctrlZ {
				suspend()
				continue
			}
			k.typed = append(k.typed, keyPress{key, k.drawn})
		}
		k.closed = err != nil
	}
}

// draw marks that a request was drawn, and returns the least keyPress.drawn of what is
// typed from now on.
func (k *keys) draw() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.take()
	k.drawn++
	return k.drawn
}

// next returns the next key that was typed. If ended, no more keys will come.
func (k *keys) next() (key keyPress, ok, ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.typed) == 0 {
		return key, false, k.closed
	}
	key, k.typed = k.typed[0], k.typed[1:]
	return key, true, false
}

// later keeps a key for the next line.
func (k *keys) later(key byte) { k.ahead = append(k.ahead, key) }

// inLine reports whether a line that is typed ahead is not yet ended.
func (k *keys) inLine() bool { return len(k.ahead) > 0 && !isEnter(k.ahead[len(k.ahead)-1]) }

// ended reports whether the agent has ended.
func (k *keys) ended() bool {
	select {
	case <-k.over:
		return true
	default:
		return false
	}
}

// Read reads one key of a line. Ctrl-C becomes the keys that empty and end a line. A second
// Ctrl-C ends the input.
func (k *keys) Read(p []byte) (int, error) {
	key, err := k.read()
	if err != nil {
		return 0, err
	}
	if key != ctrlC {
		k.interrupted = false
		p[0] = key
		return 1, nil
	}
	if k.interrupted {
		return 0, io.EOF
	}
	k.interrupted = true
	const toTheEnd = 5
	return copy(p, []byte{toTheEnd, ctrlU, '\r'}), nil
}

func (k *keys) read() (key byte, err error) {
	if len(k.ahead) > 0 {
		key, k.ahead = k.ahead[0], k.ahead[1:]
		return key, nil
	}
	for {
		key, ok, ended := k.next()
		switch {
		case ok:
			return key.key, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-k.more:
		case <-k.canceled:
			return 0, io.EOF
		case <-k.over:
			return 0, io.EOF
		}
	}
}

// crlf writes to a raw terminal, where a line feed does not return to the first column.
type crlf struct{ to io.Writer }

func (w crlf) Write(b []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}
