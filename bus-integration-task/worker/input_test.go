package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
)

// Messages of users reach the agent in full and in order: those that wait when the task is
// claimed, and those that come while the agent is busy, however many and long they are.
func TestAllMessagesReachTheHandler(t *testing.T) {
	t.Parallel()
	long := "one\n" + strings.Repeat("x", 2*task.MaxMessage)
	for name, c := range map[string]struct{ before, during []task.Payload }{
		"one while the log is read": {texts(2), texts(700)},
		"a long one before":         {[]task.Payload{{Text: "one", Body: long}}, nil},
		"many before":               {texts(3 * task.MaxMessages), texts(2)},
		"a long one later":          {nil, []task.Payload{{Text: "one", Body: long}}},
		"many later":                {texts(2), texts(700)},
		"many long ones":            {texts(1), slices.Repeat([]task.Payload{{Text: "one", Body: strings.Repeat(long, 40)}}, 9)},
		"an answer and many":        {texts(100), append([]task.Payload{{ApprovalID: "1", Decision: "accept"}}, texts(300)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				create(log, "bus#1.1")
				var want, got []string
				say := func(p task.Payload) {
					p.WorkRef = "bus#1.1"
					if p.Decision != "" {
						log.post(task.ApprovalAnswered, p)
						want = append(want, p.Decision)
						return
					}
					p.Text = fmt.Sprint(len(want), " ", p.Text)
					if p.Body != "" {
						p.Body = fmt.Sprint(len(want), " ", p.Body)
					}
					log.post(task.Message, p)
					want = append(want, max(p.Body, p.Text))
				}
				for _, p := range c.before {
					say(p)
				}
				stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, w *worker.Claim) worker.End {
					if err := w.Report(ctx, task.ApprovalRequested, task.Payload{ApprovalID: "1"}); err != nil {
						t.Error(err)
					}
					for _, p := range c.during {
						say(p)
					}
					time.Sleep(time.Second) // busy
					var handed atomic.Int64
					said := name != "one while the log is read"
					log.fail(func(read int) error {
						// In the read of the last ones; what was just handed over may not count yet.
						if left := len(want) - int(handed.Load()); read == 0 && !said && left <= 257 {
							said = true
							say(task.Payload{})
							time.Sleep(time.Second) // until the stream has shown it
						}
						return nil
					}, nil)
					for {
						select {
						case i := <-w.Inputs():
							handed.Add(1)
							got = append(got, i.Text+i.Decision)
							w.Delivered(i.EventID)
						case <-time.After(time.Minute):
							return worker.End{Name: task.Blocked}
						}
					}
				})))
				time.Sleep(10 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if s := log.state("bus#1.1"); !slices.Equal(got, want) || len(s.Messages) > 0 || s.Missed > 0 || s.Status != task.StatusBlocked {
					t.Errorf("%d of %d inputs; %s, %d wait", len(got), len(want), s.Status, len(s.Messages)+s.Missed)
				}
			})
		})
	}
}

func texts(n int) []task.Payload { return make([]task.Payload, n) }

// A message that an earlier attempt has delivered is not delivered again.
func TestDeliveredMessagesAreNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		say := func(from, to int) {
			for n := from; n < to; n++ {
				log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: fmt.Sprint(n)})
			}
		}
		say(0, 5)
		var got []string
		attempts := 0
		stop := start(t, newWorker(log, "w", handler(func(_ context.Context, c *worker.Claim) worker.End {
			attempts++
			for {
				select {
				case i := <-c.Inputs():
					got = append(got, i.Text)
					c.Delivered(i.EventID)
				case <-time.After(time.Second):
					if attempts == 1 {
						return worker.End{Name: task.Blocked}
					}
					return worker.End{Name: task.Done}
				}
			}
		})))
		time.Sleep(time.Minute)
		say(5, 100)
		log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1"})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(got) != 100 || got[5] != "5" || attempts != 2 {
			t.Errorf("%d attempts, %q", attempts, got)
		}
	})
}
