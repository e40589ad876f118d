package eventserver

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// unicast sends the events that JetStream gives to this stream of the group. For each
// identity, group and name there is a durable consumer, which all streams of the group
// share. So streams of a group can ask for different names, and each event still goes to
// one of them.
func (s *Server) unicast(ctx context.Context, out *lines, who identity, q query) error {
	log, err := s.openLog(ctx)
	if err != nil {
		return err
	}
	sources := make([]*source, len(q.names))
	for i, name := range q.names {
		subjects := subjectsOf(s.config.Prefix, who.name, []string{name}, "")
		consumer, err := s.durable(ctx, log, who, durableName(who.name, q.group, name), subjects, q.replay)
		if err != nil {
			return err
		}
		sources[i] = &source{server: s, log: log, consumer: consumer, name: name, subjects: subjects, once: !q.follow}
	}
	if err := out.open("", s.config.Heartbeat); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	deliveries, ended := make(chan delivery), make(chan error, len(sources))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, source := range sources {
		running.Go(func() { ended <- source.run(ctx, deliveries) })
	}
	return s.distribute(ctx, out, deliveries, ended, len(sources))
}

// distribute writes deliveries until all sources have ended.
func (s *Server) distribute(ctx context.Context, out *lines, deliveries <-chan delivery, ended <-chan error, sources int) error {
	heartbeat := time.NewTicker(s.config.Heartbeat)
	defer heartbeat.Stop()
	for sources > 0 {
		select {
		case d := <-deliveries:
			err := d.write(ctx, out)
			if d.written <- err; err != nil {
				return err
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			sources--
		case <-heartbeat.C:
			if err := out.heartbeat(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return out.send(events.Control{Kind: events.ControlEnded})
}

// durable returns the consumer of a group for a name. It creates the one of a new group.
func (s *Server) durable(ctx context.Context, log jetstream.Stream, who identity, name string, subjects []string, replay bool) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	config := jetstream.ConsumerConfig{
		Durable:        name,
		FilterSubjects: subjects,
		// Not "new": the server of the consumer can be behind the leader of the log.
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: log.CachedInfo().State.LastSeq + 1,
		AckPolicy:  jetstream.AckExplicitPolicy,
		AckWait:    s.config.RedeliverAfter,
		MaxDeliver: -1,
	}
	if replay {
		config.OptStartSeq = 1
	}
	consumer, err := log.Consumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		s.grouping.Lock() // so that the limit is exact for a server
		defer s.grouping.Unlock()
		if err := s.limitGroups(ctx, log, who); err != nil {
			return nil, err
		}
		consumer, err = log.CreateConsumer(ctx, config)
	}
	if errors.Is(err, jetstream.ErrConsumerExists) { // another stream has created it just now
		consumer, err = log.Consumer(ctx, name)
	}
	return consumer, err
}

// limitGroups fails if an identity must not have another group.
func (s *Server) limitGroups(ctx context.Context, log jetstream.Stream, who identity) error {
	groups, prefix := 0, groupPrefix(who.name)
	names := log.ConsumerNames(ctx)
	for name := range names.Name() {
		if strings.HasPrefix(name, prefix) {
			groups++
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	if groups >= s.config.MaxGroups {
		return errGroups
	}
	return nil
}

// groupPrefix begins the names of the consumers of an identity.
func groupPrefix(identity string) string { return "unicast-" + hash(identity) + "-" }

func durableName(identity, group, name string) string {
	return groupPrefix(identity) + hash(group+"\x00"+name)
}

// hash makes any text a part of the name of a consumer.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// delivery is an event that this stream has been given.
type delivery struct {
	message  jetstream.Msg
	position uint64
	written  chan<- error // receives the result, once
}

// write sends an event and acknowledges it once the connection has taken it. The time for
// redelivery begins with the write.
func (d delivery) write(ctx context.Context, out *lines) error {
	err := d.message.InProgress()
	if err == nil {
		err = out.event(d.position, d.message.Data())
	}
	if err == nil {
		err = out.flush()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return d.message.Ack()
}

// source takes the events of a name from a consumer, one at a time, so that a slow stream
// holds none back from the others of its group.
type source struct {
	server   *Server
	log      jetstream.Stream // as it was when the stream began
	consumer jetstream.Consumer
	name     string
	subjects []string
	once     bool // end when the group has no more events
}

// run passes events on. When the store fails, it tries again for a limited time.
func (s *source) run(ctx context.Context, deliveries chan<- delivery) error {
	alive := time.Now()
	for failures := 0; ; {
		done, err := s.next(ctx, deliveries)
		switch {
		case done || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err == nil:
			failures, alive = 0, time.Now()
			continue
		case time.Since(alive) > s.server.config.StoreTimeout:
			return fmt.Errorf("the store has not served the group for %s: %w", s.server.config.StoreTimeout, err)
		}
		pause(ctx, failures)
		failures++
	}
}

// next passes at most one event on. It reports done when the source must end.
func (s *source) next(ctx context.Context, deliveries chan<- delivery) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batch, err := s.request(ctx)
	if err != nil {
		return false, err
	}
	message := <-batch.Messages()
	switch {
	case message != nil:
		if err := s.pass(ctx, message, deliveries); err != nil {
			return true, errors.Join(err, message.Nak()) // else it is delivered again later
		}
		return false, nil
	case batch.Error() != nil || !s.once:
		return false, batch.Error()
	}
	return s.isExhausted(ctx)
}

// request asks for an event: for one that comes in the next seconds, or with once for one
// that exists.
func (s *source) request(ctx context.Context) (jetstream.MessageBatch, error) {
	if s.once {
		return s.consumer.FetchNoWait(1)
	}
	return s.consumer.Fetch(1, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(storeHeartbeat))
}

// isExhausted reports whether the group has been given all events that were in the log
// when the stream began. It fails if some are to come.
func (s *source) isExhausted(ctx context.Context) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	info, err := s.consumer.Info(bounded)
	if err != nil {
		return false, err
	}
	after := max(info.Delivered.Stream, info.Config.OptStartSeq-1)
	first, err := missing(ctx, s.log, s.subjects, after, s.log.CachedInfo().State.LastSeq)
	if err != nil {
		return false, err
	}
	if first > 0 || info.NumPending > 0 {
		return false, errors.New("events of a group are in the log and do not come")
	}
	return true, nil
}

// pass hands an event to the writer and waits for it, or skips one with another name. The
// writer can be busy with the events of other names for longer than the time for redelivery.
func (s *source) pass(ctx context.Context, message jetstream.Msg, deliveries chan<- delivery) error {
	about, err := message.Metadata()
	if err != nil {
		return err
	}
	if !slices.Contains(message.Headers()[nameHeader], s.name) {
		return message.Ack()
	}
	written := make(chan error, 1)
	keep := time.NewTicker(s.server.config.RedeliverAfter / 3)
	defer keep.Stop()
	for {
		select {
		case deliveries <- delivery{message, about.Sequence.Stream, written}:
			return <-written
		case <-keep.C:
			if err := message.InProgress(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
