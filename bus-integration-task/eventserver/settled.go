package eventserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mostRead is the number of tasks that are read one by one. More are read with the whole
// log, since JetStream is slow with many filters.
const mostRead = 512

// begin leaves out the tasks that are settled: those whose latest event has one of the
// names of query.settled and was appended on a condition, so that its writer knew the
// state of the task. Of a log of many ended tasks it reads only the headers of their
// latest events.
func (f *follower) begin(ctx context.Context) error {
	began := time.Now()
	for failures := 0; ; failures++ {
		unsettled, err := f.heads(ctx)
		switch {
		case err == nil && len(unsettled) <= mostRead:
			return f.sendTasks(ctx, unsettled)
		case err == nil:
			f.unsettled = unsettled
			return nil
		case ctx.Err() != nil || f.out.failed || time.Since(began) > f.cursor.server.config.StoreTimeout:
			return err
		}
		pause(ctx, failures)
	}
}

// heads returns the subjects whose latest message is not of a settled task. It fails if
// the server of its consumer is behind the leader.
func (f *follower) heads(ctx context.Context) (unsettled map[string]bool, err error) {
	heads := &cursor{server: f.cursor.server, log: f.cursor.log, subjects: f.cursor.subjects}
	defer heads.close()
	if err := heads.openHeads(ctx); err != nil {
		return nil, err
	}
	unsettled = make(map[string]bool)
	tick := time.NewTicker(f.cursor.server.config.Heartbeat)
	defer tick.Stop()
	for left := heads.consumer.CachedInfo().NumPending; left > 0; {
		batch, err := heads.request(ctx)
		if err != nil {
			return nil, err
		}
		got := false
		for message := range batch.Messages() {
			about, _, err := heads.take(message)
			if err != nil {
				return nil, err
			}
			got, left = true, about.NumPending
			header := message.Headers()
			if header.Get(conditionalHeader) == "" || !slices.Contains(f.query.settled, header.Get(nameHeader)) {
				unsettled[message.Subject()] = true
			}
			select {
			case <-tick.C:
				if err := f.out.heartbeat(); err != nil {
					return nil, err
				}
			default:
			}
			if left == 0 {
				break
			}
		}
		if err := batch.Error(); err != nil {
			return nil, err
		}
		if !got {
			return nil, errors.New("the latest events of tasks do not come")
		}
	}
	first, err := missing(ctx, heads.log, heads.subjects, heads.at, f.last)
	if err == nil && first > 0 {
		err = fmt.Errorf("the latest event of position %d does not come", first)
	}
	return unsettled, err
}

// openHeads creates a consumer of the headers of the latest message of each subject.
func (c *cursor) openHeads(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	consumer, err := c.log.CreateConsumer(bounded, jetstream.ConsumerConfig{
		FilterSubjects: c.subjects, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, Replicas: 1, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err == nil {
		c.consumer, c.sequence = consumer, 0
	}
	return err
}

// sendTasks sends the events of some subjects up to the last one, one subject after the
// other.
func (f *follower) sendTasks(ctx context.Context, subjects map[string]bool) error {
	for subject := range subjects {
		for at := uint64(0); ; {
			message, err := f.message(ctx, at+1, subject)
			if err != nil {
				return err
			}
			if message == nil || message.Sequence > f.last {
				break
			}
			at = message.Sequence
			if slices.Contains(f.query.names, message.Header.Get(nameHeader)) {
				if err := f.out.event(at, message.Data); err != nil {
					return err
				}
			}
		}
	}
	f.cursor.at = f.last
	return nil
}

// message returns the first message of a subject from a position on, or nil if there is
// none.
func (f *follower) message(ctx context.Context, from uint64, subject string) (*jetstream.RawStreamMsg, error) {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	message, err := f.cursor.log.GetMsg(bounded, from, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return message, err
}
