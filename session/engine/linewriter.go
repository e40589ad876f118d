package engine

import (
	"context"
	"errors"
	"io"
)

// maxPosted is how many posted lines may wait.
const maxPosted = 1000

// errBehind is the error of a line that is not posted.
var errBehind = errors.New("the agent does not read what is sent to it")

// A LineWriter writes lines to an agent's input, for engines: agents do not
// always read, and a write that is not read must not keep a caller whose context
// has ended. Its methods may be called concurrently.
type LineWriter struct {
	input   io.WriteCloser
	writing chan struct{} // holds a token during a write
	posted  chan struct{} // holds a token for each line that is posted
}

// NewLineWriter returns a LineWriter for the agent's input.
func NewLineWriter(input io.WriteCloser) *LineWriter {
	return &LineWriter{input: input, writing: make(chan struct{}, 1), posted: make(chan struct{}, maxPosted)}
}

// Write writes line, to which it adds the line break, and returns when that is
// done or when ctx ends. A line that was not begun when ctx ended is never
// written; one that was, which begun says, is written to its end while the agent
// reads, so the agent may get it later. Lines come out whole and in the order in
// which they were begun. line must not be changed afterwards.
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

// Post writes line like Write, but returns at once. It is for answers that are
// given while the agent's output is read. It drops a line when a thousand wait
// already.
func (w *LineWriter) Post(line []byte) error {
	select {
	case w.posted <- struct{}{}:
	default:
		return errBehind
	}
	go func() {
		defer func() { <-w.posted }()
		_, _ = w.Write(context.Background(), line) // an agent that is gone needs no answer
	}()
	return nil
}

// Close closes the input, also during a write, which ends it.
func (w *LineWriter) Close() error { return w.input.Close() }
