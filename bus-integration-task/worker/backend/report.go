package backend

import (
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/worker/backend/internal/excerpt"
)

// MaxText bounds each reported text, in bytes.
const MaxText = 16 << 10

// pace is the time between two reports of text, of which n were made.
func pace(n int) time.Duration {
	switch {
	case n < 60:
		return time.Second
	case n < 300:
		return 5 * time.Second
	}
	return 15 * time.Second
}

// A reporter calls a Listener on one goroutine. It gathers text and passes it on at a
// bounded rate. Its methods may be called concurrently and do not wait for the Listener,
// except flush and close.
type reporter struct {
	listener Listener
	mask     *runner.Masker

	mu     sync.Mutex
	queue  []*entry
	said   *runner.MaskWriter // of the message that is being written; nil between messages
	saying string             // its ID
	wake   chan struct{}      // news for the goroutine
	closed bool
	done   chan struct{}
}

// An entry is gathered text, or a call that is due at once.
type entry struct {
	message, progress excerpt.Text
	call              func()
}

func newReporter(l Listener, mask *runner.Masker) *reporter {
	r := &reporter{listener: l, mask: mask, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// message adds text of the agent's message id, which it ends unless more follows.
func (r *reporter) message(id, text string, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said != nil && id != r.saying {
		r.endMessage()
	}
	if r.said == nil {
		last := r.last()
		if !last.message.Empty() {
			_, _ = last.message.WriteString("\n\n")
		}
		r.said, r.saying = r.mask.Writer(messageWriter{r}), id
	}
	_, _ = r.said.Write([]byte(text)) // into memory
	if !more {
		r.endMessage()
	}
	r.news()
}

// endMessage passes on what may have been the beginning of a secret; r.mu is held.
func (r *reporter) endMessage() {
	if r.said != nil {
		_ = r.said.Flush() // into memory
		r.said = nil
	}
}

// messageWriter adds to the queued message; the reporter's mu is held.
type messageWriter struct{ r *reporter }

func (w messageWriter) Write(b []byte) (int, error) {
	return w.r.last().message.Write(b)
}

// progress adds a line about what the agent does.
func (r *reporter) progress(text string) {
	text = line(r.mask.Text(text), 1000)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endMessage()
	last := r.last()
	if !last.progress.Empty() {
		_, _ = last.progress.WriteString("\n")
	}
	_, _ = last.progress.WriteString(text)
	r.news()
}

// notice reports a line at once.
func (r *reporter) notice(text string) {
	text = line(r.mask.Text(text), 1000)
	r.call(func() {
		if r.listener.Notice != nil {
			r.listener.Notice(text)
		}
	})
}

// call calls f after everything before it, at once.
func (r *reporter) call(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endMessage()
	if !r.closed {
		r.queue = append(r.queue, &entry{call: f})
	}
	r.news()
}

// last returns the entry that gathers text; r.mu is held.
func (r *reporter) last() *entry {
	if n := len(r.queue); n == 0 || r.queue[n-1].call != nil {
		r.queue = append(r.queue, &entry{message: excerpt.Text{Limit: MaxText}, progress: excerpt.Text{Limit: MaxText}})
	}
	return r.queue[len(r.queue)-1]
}

func (r *reporter) news() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// flush returns when everything so far has been reported.
func (r *reporter) flush() {
	reported := make(chan struct{})
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return
	}
	r.call(func() { close(reported) })
	<-reported
}

// close reports what is left, and nothing afterwards.
func (r *reporter) close() {
	r.mu.Lock()
	r.endMessage()
	r.closed = true
	r.mu.Unlock()
	r.news()
	<-r.done
}

// run makes the calls.
func (r *reporter) run() {
	defer close(r.done)
	paced := 0
	next := time.Now() // when text may be reported again
	for {
		r.mu.Lock()
		due := r.closed || len(r.queue) > 0 && r.queue[len(r.queue)-1].call != nil || len(r.queue) > 1
		wait := time.Until(next)
		var list []*entry
		if due || len(r.queue) > 0 && wait <= 0 {
			list, r.queue = r.queue, nil
		}
		gathered, closed := len(r.queue) > 0, r.closed
		r.mu.Unlock()
		for _, e := range list {
			if r.report(e) {
				next = time.Now().Add(pace(paced))
				paced++
			}
		}
		switch {
		case len(list) > 0:
		case closed:
			return
		case gathered:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-r.wake:
			}
			timer.Stop()
		default:
			<-r.wake
		}
	}
}

// report makes the calls of an entry, and returns whether it had text.
func (r *reporter) report(e *entry) bool {
	if e.call != nil {
		e.call()
		return false
	}
	progress, message := e.progress.Take(), strings.TrimSpace(e.message.Take())
	if progress != "" && r.listener.Progress != nil {
		r.listener.Progress(progress)
	}
	if message != "" && r.listener.Message != nil {
		r.listener.Message(message)
	}
	return progress != "" || message != ""
}
