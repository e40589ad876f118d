package eventserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// A pull consumer can end with the server that it is on, the store of that server can be
// behind that of the leader, and a request or its answer can be lost with a connection.
// The iterators of the client library then wait forever: they ignore that a request found
// no consumer, and miss heartbeats if they are called with a timeout (nats.go v1.55.0,
// pullSubscription.Next). So all reading is done in single requests, whose heartbeats are
// checked, and the position is compared with the log of the leader.
const (
	aheadMessages = 256 // that JetStream sends for a request
	aheadBytes    = maxMessageBytes + 1<<20

	storeHeartbeat = 2 * time.Second        // a request without a sign of life for twice as long has failed
	catchUpCheck   = 500 * time.Millisecond // time without a message after which the position is checked
	storeAnswer    = 5 * time.Second        // limit of one request to JetStream
)

// broadcast sends the events of the log in its order. It returns nil when the stream is
// complete.
func (s *Server) broadcast(ctx context.Context, out *lines, who identity, q query) error {
	log, err := s.logUpTo(ctx, q.after)
	if err != nil {
		return err
	}
	last := log.CachedInfo().State.LastSeq
	after := q.after
	if !q.replay {
		after = last
	}
	c := &cursor{server: s, log: log, subjects: filterOf(s.config.Prefix, who.name, q.names, q.workRef), at: after}
	defer c.close()
	if len(q.settled) == 0 && (q.follow || after < last) {
		if err := c.open(ctx); err != nil {
			return err
		}
	}
	if err := out.open(events.FormatID(after), s.config.Heartbeat); err != nil {
		return err
	}
	f := follower{cursor: c, out: out, query: q, last: last, alive: time.Now()}
	if len(q.settled) > 0 && last > 0 {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	return f.run(ctx)
}

// openLog returns the stream of JetStream, with information that its leader has just given.
func (s *Server) openLog(ctx context.Context) (jetstream.Stream, error) {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	return s.broker.js.Stream(bounded, s.config.Stream)
}

// logUpTo returns the log if it has the position. In a cluster, a leader that has been cut
// off can answer for some seconds, so the position may be one that it does not know.
func (s *Server) logUpTo(ctx context.Context, position uint64) (jetstream.Stream, error) {
	began := time.Now()
	for failures := 0; ; failures++ {
		log, err := s.openLog(ctx)
		if err != nil || position <= log.CachedInfo().State.LastSeq {
			return log, err
		}
		if s.config.Replicas == 1 || time.Since(began) > s.config.StoreTimeout {
			return nil, badRequest("after_id: the log ends before it", "this is another log; read it from its beginning")
		}
		pause(ctx, failures)
	}
}

// pause waits after a failure: 10 milliseconds, and after further ones up to a second.
func pause(ctx context.Context, failures int) {
	select {
	case <-ctx.Done():
	case <-time.After(min(10*time.Millisecond<<min(failures, 10), time.Second)):
	}
}

// missing returns the position of the first message on one of the subjects after a
// position and up to last, as the leader knows it, or 0 if there is none.
func missing(ctx context.Context, log jetstream.Stream, subjects []string, after, last uint64) (uint64, error) {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	first := uint64(0)
	for _, subject := range subjects {
		if after >= last {
			break
		}
		message, err := log.GetMsg(bounded, after+1, jetstream.WithGetMsgSubject(subject))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return 0, err
		case message.Sequence <= last:
			first, last = message.Sequence, message.Sequence-1
		}
	}
	return first, nil
}

// cursor reads the messages of some subjects in the order of the log. It reads with a pull
// consumer until that fails or loses a message, and then with another from where it is.
type cursor struct {
	server   *Server
	log      jetstream.Stream
	subjects []string
	at       uint64             // position up to which everything has been read
	consumer jetstream.Consumer // nil if there is none
	sequence uint64             // of the latest message of the consumer
}

// open creates a consumer.
func (c *cursor) open(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	consumer, err := c.log.CreateConsumer(bounded, jetstream.ConsumerConfig{
		FilterSubjects: c.subjects,
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: c.at + 1,
		AckPolicy: jetstream.AckNonePolicy, Replicas: 1, MemoryStorage: true,
		InactiveThreshold: time.Minute + c.server.config.WriteTimeout,
	})
	if err != nil {
		return err
	}
	c.consumer, c.sequence = consumer, 0
	return nil
}

// close deletes the consumer, without a wait. JetStream deletes an unused one later.
func (c *cursor) close() {
	if c.consumer == nil {
		return
	}
	name := c.consumer.CachedInfo().Name
	c.consumer = nil
	c.server.open.Go(func() {
		bounded, cancel := context.WithTimeout(c.server.stopping, storeAnswer)
		defer cancel()
		_ = c.log.DeleteConsumer(bounded, name)
	})
}

// request asks for the next messages. It creates a consumer if there is none.
func (c *cursor) request(ctx context.Context) (jetstream.MessageBatch, error) {
	if c.consumer == nil {
		if err := c.open(ctx); err != nil {
			return nil, err
		}
	}
	return c.consumer.Fetch(aheadMessages, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(storeHeartbeat), jetstream.FetchMaxBytes(aheadBytes))
}

// take moves the cursor to a message. It reports false for one that it is already past.
func (c *cursor) take(m jetstream.Msg) (about *jetstream.MsgMetadata, next bool, err error) {
	if about, err = m.Metadata(); err != nil {
		return nil, false, err
	}
	if c.sequence++; about.Sequence.Consumer != c.sequence {
		return nil, false, fmt.Errorf("message %d of a consumer came instead of %d", about.Sequence.Consumer, c.sequence)
	}
	if about.Sequence.Stream <= c.at {
		return about, false, nil
	}
	c.at = about.Sequence.Stream
	return about, true, nil
}

// follower sends the messages of a cursor.
type follower struct {
	cursor    *cursor
	out       *lines
	query     query
	last      uint64          // position of the log when the stream began
	unsettled map[string]bool // subjects to send up to last; nil is all
	caughtUp  bool
	complete  bool // nothing more must be sent

	tick    *time.Ticker
	alive   time.Time // when the store last served the stream
	absent  uint64    // position of an event that had not come at the last check
	noticed time.Time // when that was
}

// run sends events until the stream is complete. When the store fails, it tries again for
// a limited time.
func (f *follower) run(ctx context.Context) error {
	config := f.cursor.server.config
	f.tick = time.NewTicker(min(catchUpCheck, config.Heartbeat))
	defer f.tick.Stop()
	err := f.catchUp(ctx, f.cursor.consumer == nil || f.cursor.consumer.CachedInfo().NumPending == 0)
	for failures := 0; ; failures++ {
		for err == nil && !f.complete {
			failures = 0
			err = f.batch(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f.complete || f.out.failed:
			return err
		case time.Since(f.alive) > config.StoreTimeout:
			return fmt.Errorf("the store has not served the stream for %s: %w", config.StoreTimeout, err)
		}
		// In a cluster, a server can learn of a new consumer a little later.
		if !errors.Is(err, nats.ErrNoResponders) || failures%4 == 3 {
			f.cursor.close()
		}
		pause(ctx, failures)
		err = f.out.heartbeat()
	}
}

// batch requests messages and sends them.
func (f *follower) batch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batch, err := f.cursor.request(ctx)
	if err != nil {
		return err
	}
	messages := batch.Messages()
	for {
		message, err := f.next(ctx, messages)
		switch {
		case err != nil || f.complete:
			return err
		case message == nil:
			return batch.Error()
		}
		if err := f.send(ctx, message); err != nil || f.complete {
			return err
		}
	}
}

// next returns the next message, or nil when a batch has ended or the stream is complete.
// While it waits, it sends what has been written and heartbeats, and checks the position.
func (f *follower) next(ctx context.Context, messages <-chan jetstream.Msg) (jetstream.Msg, error) {
	select {
	case message := <-messages:
		return message, nil
	default:
	}
	if f.out.dirty {
		if err := f.out.flush(); err != nil {
			return nil, err
		}
	}
	for {
		select {
		case message := <-messages:
			return message, nil
		case <-f.tick.C:
			if err := f.out.heartbeat(); err != nil {
				return nil, err
			}
			if err := f.check(ctx); err != nil || f.complete {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *follower) send(ctx context.Context, m jetstream.Msg) error {
	about, next, err := f.cursor.take(m)
	if err != nil || !next {
		return err
	}
	f.alive = time.Now()
	if f.cursor.at > f.last && !f.query.follow {
		return f.catchUp(ctx, false)
	}
	left := f.unsettled != nil && f.cursor.at <= f.last && !f.unsettled[m.Subject()]
	if !left && slices.Contains(f.query.names, m.Headers().Get(nameHeader)) {
		if err := f.out.event(f.cursor.at, m.Data()); err != nil {
			return err
		}
	}
	return f.catchUp(ctx, about.NumPending == 0)
}

// check compares the cursor with the log. It fails if an event that it has found there
// does not come.
func (f *follower) check(ctx context.Context) error {
	if f.cursor.at < f.absent {
		if time.Since(f.noticed) < storeAnswer {
			return nil
		}
		defer func() { f.absent = 0 }()
		return fmt.Errorf("event %s is in the log and does not come", events.FormatID(f.absent))
	}
	if f.caughtUp {
		log, err := f.cursor.server.openLog(ctx)
		if err != nil {
			return err
		}
		f.last = log.CachedInfo().State.LastSeq
	}
	first, err := missing(ctx, f.cursor.log, f.cursor.subjects, f.cursor.at, f.last)
	if err != nil {
		return err
	}
	if first > 0 {
		f.absent, f.noticed = first, time.Now()
		return nil
	}
	f.alive = time.Now()
	f.cursor.at = max(f.cursor.at, f.last)
	return f.catchUp(ctx, false)
}

// catchUp marks that all events that were in the log when the stream began have been
// sent, and completes a stream that does not follow the log. If the consumer has no more
// messages, it checks whether the log has none either.
func (f *follower) catchUp(ctx context.Context, exhausted bool) error {
	switch {
	case f.caughtUp:
		return nil
	case f.cursor.at < f.last && exhausted:
		return f.check(ctx)
	case f.cursor.at < f.last:
		return nil
	}
	f.caughtUp = true
	f.tick.Reset(f.cursor.server.config.Heartbeat)
	caughtUp := events.Control{Kind: events.ControlCaughtUp}
	if len(f.query.settled) > 0 {
		caughtUp.AfterID = events.FormatID(f.cursor.at)
	}
	if err := f.out.send(caughtUp); err != nil {
		return err
	}
	if f.query.follow {
		return nil
	}
	f.complete = true
	return f.out.send(events.Control{Kind: events.ControlEnded})
}
