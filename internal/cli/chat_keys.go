package cli

import (
	"bytes"
	"io"
)

const ctrlC = 3

// keys is what is typed in a terminal. While a line is edited it is read by Read,
// during a turn from pressed; what is typed ahead then is kept for the next line.
type keys struct {
	pressed     chan byte // closed at the end of the terminal
	ahead       []byte
	interrupted bool // the last line was given up by Ctrl-C
	canceled    <-chan struct{}
	over        <-chan struct{} // the agent has ended
}

func newKeys(in io.Reader, canceled, over <-chan struct{}) *keys {
	k := &keys{pressed: make(chan byte, 4096), canceled: canceled, over: over}
	go func() {
		defer close(k.pressed)
		buffer := make([]byte, 256)
		for {
			n, err := in.Read(buffer)
			for _, key := range buffer[:n] {
				k.pressed <- key
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// later keeps a key for the next line.
func (k *keys) later(key byte) { k.ahead = append(k.ahead, key) }

// ended reports whether the agent has ended.
func (k *keys) ended() bool {
	select {
	case <-k.over:
		return true
	default:
		return false
	}
}

// Read reads one key of a line. Ctrl-C gives the line up: it becomes what empties
// and ends a line. A second one is the end.
func (k *keys) Read(p []byte) (int, error) {
	var key byte
	if len(k.ahead) > 0 {
		key, k.ahead = k.ahead[0], k.ahead[1:]
	} else {
		var ok bool
		select {
		case key, ok = <-k.pressed:
			if !ok {
				return 0, io.EOF
			}
		case <-k.canceled:
			return 0, io.EOF
		case <-k.over:
			return 0, io.EOF
		}
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
	const toTheEnd, erase, enter = 5, 21, '\r'
	return copy(p, []byte{toTheEnd, erase, enter}), nil
}

// crlf writes to a raw terminal, where a line break alone does not return to the
// first column.
type crlf struct{ to io.Writer }

func (w crlf) Write(b []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}
