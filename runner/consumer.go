package runner

import (
	"io"
	"reflect"
	"sync"

	"github.com/busdk/bus-agent/agent"
)

// A consumer is a writer or function of the caller or the recorder that receives the
// agent's output. It is called by one goroutine at a time, and not again after it
// failed, panicked or ended its goroutine. The zero value has not failed.
type consumer struct {
	mu  sync.Mutex
	err error
}

// call calls take, or returns the error of an earlier call.
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

// guardWriters replaces each writer by a [writer], equal ones by the same.
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

// guardOutput makes consumers of the caller's writers and functions.
func guardOutput(o *agent.Output) {
	guardWriters(&o.Stdout, &o.Stderr, &o.Text)
	o.Events = guardFunc(o.Events)
}

// guardRecording makes consumers of the recorder's writers and functions.
func guardRecording(r *agent.Recording) {
	guardWriters(&r.Stdout, &r.Stderr)
	r.Events, r.Message = guardFunc(r.Events), guardFunc(r.Message)
}

// same reports whether two writers are one.
func same(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) &&
		reflect.TypeOf(a).Comparable() && reflect.ValueOf(a).Comparable() && a == b
}
