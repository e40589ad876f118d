package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// pipes are our ends of the standard streams of a child. A nil file is a stream
// that goes to or comes from the null device.
type pipes struct {
	stdin, stdout, stderr *os.File
	input                 string // what is still to be written to stdin

	copying sync.WaitGroup
	mu      sync.Mutex
	err     error // the first error of a writer
}

// open appends the child's ends to child, also when it fails half-way.
func (p *pipes) open(child []*os.File, s Spec) ([]*os.File, error) {
	if s.Stdin == "" && !s.Interactive {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return child, err
		}
		child = append(child, null)
	} else {
		r, w, err := inputPipe()
		if err != nil {
			return child, err
		}
		child, p.stdin = append(child, r), w
		p.writeAhead(s)
	}
	for _, stream := range []struct {
		ours *(*os.File)
		to   io.Writer
	}{{&p.stdout, s.Stdout}, {&p.stderr, s.Stderr}} {
		if stream.to == nil {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				return child, err
			}
			child = append(child, null)
			continue
		}
		r, w, err := outputPipe()
		if err != nil {
			return child, err
		}
		if stream.ours == &p.stdout {
			enlarge(r)
		}
		child, *stream.ours = append(child, w), r
	}
	return child, nil
}

// writeAhead writes as much of the input as the pipe has room for. That is usually all
// of it, so that no goroutine has to wait for the process to read.
func (p *pipes) writeAhead(s Spec) {
	if s.Interactive {
		return
	}
	p.input = s.Stdin
	conn, err := p.stdin.SyscallConn()
	if err != nil {
		return
	}
	conn.Write(func(fd uintptr) bool {
		// The reader's end is open, so what fails now fails again later.
		n, _ := unix.Write(int(fd), []byte(p.input[:min(len(p.input), aheadSize)]))
		p.input = p.input[max(n, 0):]
		return true
	})
	if p.input == "" {
		p.stdin.Close()
		p.stdin = nil
	}
}

// aheadSize bounds what is written ahead: what a pipe holds, as a rule.
const aheadSize = 64 << 10

func (p *pipes) close() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// run starts to copy; onError is called when a writer failed.
func (p *pipes) run(s Spec, onError func()) {
	if p.stdin != nil && !s.Interactive {
		p.copying.Go(func() {
			// A process need not read its input: a broken pipe is not an
			// error, and finish ends a Write that is not read.
			io.WriteString(p.stdin, p.input)
			p.stdin.Close()
		})
	}
	for _, stream := range []stream{{p.stdout, s.Stdout}, {p.stderr, s.Stderr}} {
		if stream.from == nil {
			continue
		}
		p.copying.Go(func() {
			if err := stream.copy(func(err error) { p.fail(err); onError() }); err != nil {
				p.fail(err)
			}
		})
	}
}

func (p *pipes) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// finish reads what is in the pipes, waits for no more, and closes them: a
// process that could not be ended may hold their other ends open for ever. It
// returns the first error of a writer.
func (p *pipes) finish() error {
	past := time.Unix(1, 0)
	for _, f := range []*os.File{p.stdout, p.stderr} {
		if f != nil {
			f.SetReadDeadline(past)
		}
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.copying.Wait()
	p.close()
	return p.err
}

// A stream passes what comes out of a pipe to a writer.
type stream struct {
	from *os.File
	to   io.Writer
}

// pieces are read buffers. One is held only while there is something to read, so
// a thousand silent processes need none.
var pieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copy copies until the end of the pipe, or, once its deadline has passed, all
// that is in the pipe then. It calls failed once when the writer fails, and
// drops what comes after.
func (s *stream) copy(failed func(error)) error {
	conn, err := s.from.SyscallConn()
	if err != nil {
		return err
	}
	deliver := func(b []byte) {
		if s.to == nil {
			return
		}
		n, err := s.to.Write(b)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			s.to = nil
			failed(err)
		}
	}
	for {
		var readErr error
		ended := false
		err := conn.Read(func(fd uintptr) bool {
			piece := pieces.Get().(*[64 << 10]byte)
			defer pieces.Put(piece)
			var n int
			for {
				if n, readErr = unix.Read(int(fd), piece[:]); readErr != unix.EINTR {
					break
				}
			}
			if readErr == unix.EAGAIN {
				return false
			}
			if ended = n == 0 && readErr == nil; n > 0 {
				deliver(piece[:n])
			}
			return true
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			piece := pieces.Get().(*[64 << 10]byte)
			defer pieces.Put(piece)
			return s.drain(piece[:], deliver)
		case err != nil:
			return err
		case readErr != nil:
			return readErr
		case ended:
			return nil
		}
	}
}

// drain delivers what is in the pipe at this moment and no more, so that a
// writer that is still alive cannot make it endless.
func (s *stream) drain(piece []byte, deliver func([]byte)) error {
	conn, err := s.from.SyscallConn()
	if err != nil {
		return err
	}
	var readErr error
	err = conn.Control(func(fd uintptr) {
		var left int
		if left, readErr = buffered(int(fd)); readErr != nil {
			return
		}
		for left > 0 {
			n, err := unix.Read(int(fd), piece[:min(left, len(piece))])
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN, err == nil && n == 0:
				return
			case err != nil:
				readErr = err
				return
			default:
				deliver(piece[:n])
				left -= n
			}
		}
	})
	if err != nil {
		return err
	}
	return readErr
}
