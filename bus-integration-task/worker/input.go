package worker

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/busdk/bus-integration-task/task"
)

// An Input is what reaches a task while it is worked on: a message of a user, or the
// answer to an approval request.
type Input struct {
	EventID    string // to be given to [Claim.Delivered]
	Text       string // of a message
	ApprovalID string // of an answer
	Decision   string
}

// inputOf returns the input that a change is, if it is one for the current attempt.
func inputOf(change task.Change, e task.Event) (i Input, ok bool) {
	switch {
	case change.Kind == task.ChangeSaid:
		return Input{EventID: e.ID, Text: cmp.Or(e.Body, e.Text)}, true
	case change.Kind == task.ChangeAnswered:
		return Input{EventID: e.ID, ApprovalID: e.ApprovalID, Decision: e.Decision}, true
	}
	return Input{}, false
}

// Bounds of the inputs in memory. The last one may exceed the bytes.
const (
	maxInputs     = 256
	maxInputBytes = 1 << 20
)

// inputs are those that wait for the handler. What does not fit is read from the log later.
type inputs struct {
	handler chan Input
	news    chan struct{} // gets a token when one is added
	last    string        // ID of the latest that the handler has, or need not have; of feed alone

	mu     sync.Mutex
	queue  []Input
	bytes  int
	gap    bool // the log has more, after those in the queue
	missed bool // one was left out since the log was read
}

// init lets those that wait in a claimed task be first.
func (w *inputs) init(s *task.State) {
	w.handler, w.news, w.last, w.gap = make(chan Input), make(chan struct{}, 1), s.DeliveredID, s.Missed > 0
	for _, m := range s.Messages {
		w.gap = w.gap || m.Cut
		w.add(Input{EventID: m.EventID, Text: m.Text})
	}
}

func (w *inputs) add(i Input) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap || len(w.queue) == maxInputs || w.bytes >= maxInputBytes {
		w.gap, w.missed = true, true
	} else {
		w.queue = append(w.queue, i)
		w.bytes += len(i.Text)
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (w *inputs) take() (queue []Input, gap bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue, w.queue, w.bytes, w.missed = w.queue, nil, 0, false
	return queue, w.gap
}

// filled records that everything was read up to now, except what was missed meanwhile.
func (w *inputs) filled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = w.missed
}

// Inputs returns a channel with the messages and answers for the task in the order of the
// log. It is never closed.
func (c *Claim) Inputs() <-chan Input { return c.waiting.handler }

// feed gives the handler what waits for it, until ctx ends.
func (c *Claim) feed(ctx context.Context) {
	w := &c.waiting
	for {
		list, gap := w.take()
		if len(list) == 0 && gap {
			var err error
			if list, err = c.readInputs(ctx); err == nil {
				w.filled()
			} else if len(list) == 0 {
				if ctx.Err() == nil {
					c.run.warn("task " + c.Task().Ref + ": cannot read what users wrote: " + err.Error())
				}
				return
			}
		}
		for _, i := range list {
			if i.EventID <= w.last {
				continue
			}
			select {
			case w.handler <- i:
				w.last = i.EventID
			case <-ctx.Done():
				return
			}
		}
		if len(list) > 0 || gap {
			continue
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return
		}
	}
}

var errEnough = errors.New("enough")

// readInputs reads the next inputs from the log. The error is nil if there are no more.
func (c *Claim) readInputs(ctx context.Context) (list []Input, err error) {
	var state task.State
	size := 0
	err = c.Events(ctx, func(e task.Event) error {
		i, ok := inputOf(state.Apply(e), e)
		if !ok || e.ID <= c.waiting.last || i.ApprovalID != "" && !state.Holds(c.attempt) {
			return nil
		}
		list = append(list, i)
		if size += len(i.Text); len(list) == maxInputs || size >= maxInputBytes {
			return errEnough
		}
		return nil
	})
	return list, err
}

// pass passes a change on to the handler. It does not block; the lock of the entry is held.
func (c *Claim) pass(change task.Change, event task.Event) {
	if i, ok := inputOf(change, event); ok {
		c.waiting.add(i)
	}
	if change.Lost == c.attempt {
		if c.entry.state.Status == task.StatusCanceled {
			c.cancel(ErrCanceled)
			return
		}
		c.cancel(ErrLost)
	}
}
