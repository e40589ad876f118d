package engine

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// Bounds of the posted lines that wait.
const (
	maxPosted      = 1000
	maxPostedBytes = 64 << 20
)

// errBehind is the error of a line that is not posted.
var errBehind = errors.New("the agent does not read what is sent to it")

// A LineWriter writes lines to an agent's input, for engines: agents do not
// always read, and a blocked write must not hold up a caller whose context has
// ended. Its methods may be called concurrently.
type LineWriter struct {
	input   io.WriteCloser
	writing chan struct{} // holds a token during a write
	posted  chan struct{} // holds a token for each line that is posted
	size    atomic.Int64  // of these lines
}

// NewLineWriter returns a LineWriter for the agent's input.
func NewLineWriter(input io.WriteCloser) *LineWriter {
	return &LineWriter{input: input, writing: make(chan struct{}, 1), posted: make(chan struct{}, maxPosted)}
}

// Write writes line and a line break, and returns when that is done or when ctx
// ends. A line not begun when ctx ends is never written. A line that was begun,
// as begun reports, is written to its end while the agent reads, so the agent
// may receive it later. Lines are written whole and in the order in which they
// were begun. The caller must not change line afterwards.
func (w *LineWriter) Write(ctx context.Context, line []byte) (begun bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	select {
	case w.writing <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	text := make([]byte, 0, len(line)+1)
	text = append(append(text, line...), '\n')
	if ctx.Done() == nil {
		return true, w.write(text)
	}
	written := make(chan error, 1)
	go func() { written <- w.write(text) }()
	select {
	case err := <-written:
		return true, err
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

func (w *LineWriter) write(text []byte) error {
	defer func() { <-w.writing }()
	_, err := w.input.Write(text)
	return err
}

// Post writes line like Write, but returns at once. It is for answers sent by
// the goroutine that reads the agent's output. It drops the line if a thousand
// lines, or lines of 64 MiB, are waiting already.
func (w *LineWriter) Post(line []byte) error {
	size := int64(len(line))
	if w.size.Add(size) > maxPostedBytes {
		w.size.Add(-size)
		return errBehind
	}
	select {
	case w.posted <- struct{}{}:
	default:
		w.size.Add(-size)
		return errBehind
	}
	go func() {
		defer func() { w.size.Add(-size); <-w.posted }()
		_, _ = w.Write(context.Background(), line) // an agent that is gone needs no answer
	}()
	return nil
}

// Close closes the input, also during a write, which ends it.
func (w *LineWriter) Close() error { return w.input.Close() }
