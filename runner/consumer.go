package runner

import (
	"io"
	"reflect"
	"sync"

	"github.com/busdk/bus-agent/agent"
)

// A consumer takes what an agent says: a writer or a function of the caller or of
// the recorder. It is called by one goroutine at a time, and never again once it
// has failed, panicked or ended its goroutine. The zero value has not failed.
type consumer struct {
	mu  sync.Mutex
	err error
}

// call calls take, or returns why the consumer is not called any more.
func (c *consumer) call(take func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.err = errCallback // unless take returns
	c.err = take()
	return c.err
}

// A writer is a consumer that is written to.
type writer struct {
	consumer
	to io.Writer
}

func (w *writer) Write(b []byte) (n int, err error) {
	err = w.call(func() error {
		var err error
		if n, err = w.to.Write(b); err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		return err
	})
	return n, err
}

// guardWriters puts a [writer] in the place of each writer, the same one where two
// are the same.
func guardWriters(list ...*io.Writer) {
	var made []*writer
next:
	for _, w := range list {
		if *w == nil {
			continue
		}
		for _, known := range made {
			if same(*w, known.to) {
				*w = known
				continue next
			}
		}
		known := &writer{to: *w}
		*w, made = known, append(made, known)
	}
}

// guardFunc returns f as a consumer; nil stays nil.
func guardFunc[T any](f func(T) error) func(T) error {
	if f == nil {
		return nil
	}
	c := &consumer{}
	return func(v T) error { return c.call(func() error { return f(v) }) }
}

// guardOutput makes consumers of what the caller gave.
func guardOutput(o *agent.Output) {
	guardWriters(&o.Stdout, &o.Stderr, &o.Text)
	o.Events = guardFunc(o.Events)
}

// guardRecording makes consumers of what a recording has.
func guardRecording(r *agent.Recording) {
	guardWriters(&r.Stdout, &r.Stderr)
	r.Events, r.Message = guardFunc(r.Events), guardFunc(r.Message)
}

// same reports whether two writers are one.
func same(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) &&
		reflect.TypeOf(a).Comparable() && reflect.ValueOf(a).Comparable() && a == b
}
