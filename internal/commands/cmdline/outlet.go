package cmdline

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// consumerGrace is how long a reader of our output may neither read nor close it
// after the program should have ended: a little less than an agent has, so that there is time
// to clean up before the program is ended.
const consumerGrace = 4 * time.Second

// lastChance is how long a write that begins later may take.
const lastChance = 100 * time.Millisecond

// errNotRead says that the reader of our output was given up.
var errNotRead = errors.New("its reader neither reads nor closes it")

// errNoReader is the error of opening an output that was given up.
var errNoReader = errors.New("it is a pipe without a reader")

// outlets bound how long the readers of standard output and standard error can
// hold up the program. A slow reader slows the program and loses nothing, until
// the program should have ended.
type outlets struct {
	over  chan struct{} // closed when readers are given up
	close func()

	mu    sync.Mutex
	timer *time.Timer
	timed []*timedOutlet
}

func newOutlets() *outlets {
	o := &outlets{over: make(chan struct{})}
	o.close = sync.OnceFunc(func() {
		close(o.over)
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, t := range o.timed {
			t.expire()
		}
	})
	return o
}

// limit gives readers up d and the grace from now; the last call counts.
func (o *outlets) limit(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
	o.timer = time.AfterFunc(d+consumerGrace, o.close)
}

// watch gives readers up when the grace has passed since the end of ctx.
func (o *outlets) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(consumerGrace, o.close) })
}

// writer returns a writer to w whose Write returns when readers are given up. A
// file and a device such as /dev/null need no reader and are written as they are.
func (o *outlets) writer(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return w
	}
	if info, err := f.Stat(); err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeCharDevice != 0 && !IsTerminal(f)) {
		return w
	}
	if f.SetWriteDeadline(time.Time{}) == nil {
		t := &timedOutlet{f, o.over}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.timed = append(o.timed, t)
		return t
	}
	return &outlet{w: w, over: o.over}
}

// open returns what create opens. A pipe without a reader is waited for until readers
// are given up; then the opening is left behind, as it cannot be interrupted.
func (o *outlets) open(create func() (*os.File, error)) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := create()
		select {
		case done <- opened{f, err}:
		case <-o.over:
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case got := <-done:
		return got.f, got.err
	case <-o.over:
		return nil, errNoReader
	}
}

// A timedOutlet is a stream with a reader that takes deadlines.
type timedOutlet struct {
	f    *os.File
	over <-chan struct{}
}

func (t *timedOutlet) Write(b []byte) (int, error) {
	select {
	case <-t.over:
		t.expire()
	default:
	}
	n, err := t.f.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errNotRead
	}
	return n, err
}

func (t *timedOutlet) expire() { _ = t.f.SetWriteDeadline(time.Now().Add(lastChance)) }

// An outlet is a stream with a reader that takes no deadlines. A write to it cannot
// be interrupted, so it happens on a goroutine that can be left behind.
type outlet struct {
	w    io.Writer
	over <-chan struct{}

	mu     sync.Mutex
	buffer []byte // what is being written: the caller's is its own again
	given  chan struct{}
	taken  chan written
	stuck  bool // the goroutine was left behind
}

// written is the result of a write.
type written struct {
	n   int
	err error
}

func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stuck {
		return 0, errNotRead
	}
	if o.given == nil {
		o.given, o.taken = make(chan struct{}), make(chan written)
		go o.serve()
	}
	o.buffer = append(o.buffer[:0], b...)
	o.given <- struct{}{}
	select {
	case done := <-o.taken:
		return done.n, done.err
	case <-o.over:
	}
	select {
	case done := <-o.taken:
		return done.n, done.err
	case <-time.After(lastChance):
		o.stuck = true
		return 0, errNotRead
	}
}

func (o *outlet) serve() {
	for range o.given {
		n, err := o.w.Write(o.buffer)
		o.taken <- written{n, err}
	}
}
