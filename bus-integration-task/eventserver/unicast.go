package eventserver

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// unicast sends the events that JetStream gives to this stream of the group. For each
// identity, group and name there is a durable consumer, which all streams of the group
// share. So streams of a group can ask for different names, and each event still goes to
// one of them.
func (s *Server) unicast(ctx context.Context, out *lines, who identity, q query) error {
	ctx, cancel := context.WithCancel(ctx)
	sources := make([]*source, len(q.names))
	for i, name := range q.names {
		consumer, err := s.durable(ctx, who, q, name)
		if err != nil {
			cancel()
			return err
		}
		sources[i] = &source{consumer: consumer, name: name, once: !q.follow, wait: s.config.Heartbeat}
	}
	if err := out.open("", s.config.Heartbeat); err != nil {
		cancel()
		return err
	}

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
func (s *Server) durable(ctx context.Context, who identity, q query, name string) (jetstream.Consumer, error) {
	config := jetstream.ConsumerConfig{
		Durable:        durableName(who.name, q.group, name),
		FilterSubjects: subjectsOf(s.config.Prefix, who.name, []string{name}, ""),
		DeliverPolicy:  jetstream.DeliverNewPolicy,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        s.config.RedeliverAfter,
		MaxDeliver:     -1,
	}
	if q.replay {
		config.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	consumer, err := s.broker.js.Consumer(ctx, s.config.Stream, config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = s.broker.js.CreateConsumer(ctx, s.config.Stream, config)
	}
	if errors.Is(err, jetstream.ErrConsumerExists) { // another stream has created it just now
		consumer, err = s.broker.js.Consumer(ctx, s.config.Stream, config.Durable)
	}
	return consumer, err
}

// durableName makes the name of a consumer of any text.
func durableName(identity, group, name string) string {
	sum := sha256.Sum256([]byte(identity + "\x00" + group + "\x00" + name))
	return "unicast-" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// delivery is an event that this stream has been given.
type delivery struct {
	message  jetstream.Msg
	position uint64
	written  chan<- error // receives the result, once
}

// write sends an event and acknowledges it once the connection has taken it.
func (d delivery) write(ctx context.Context, out *lines) error {
	err := out.event(d.position, d.message.Data())
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
	consumer jetstream.Consumer
	name     string
	once     bool // end when the group has no more events
	wait     time.Duration
}

func (s *source) run(ctx context.Context, deliveries chan<- delivery) error {
	if s.once && s.consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := s.consumer.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	defer messages.Stop()
	for {
		message, err := messages.Next(jetstream.NextMaxWait(s.wait))
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = message.Nak() // else it is delivered again later
			}
			return ctx.Err()
		case errors.Is(err, nats.ErrTimeout) && s.once:
			info, err := s.consumer.Info(ctx)
			if err != nil || info.NumPending == 0 {
				return err
			}
			continue
		case errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoHeartbeat):
			continue
		case err != nil:
			return err
		}
		about, err := message.Metadata()
		if err != nil {
			return err
		}
		if err := s.pass(ctx, message, about.Sequence.Stream, deliveries); err != nil {
			// Stopped first, or JetStream could give the event to this stream again.
			messages.Stop()
			return errors.Join(err, message.Nak())
		}
		if s.once && about.NumPending == 0 {
			return nil
		}
	}
}

// pass hands an event to the writer and waits for it, or skips one with another name.
func (s *source) pass(ctx context.Context, message jetstream.Msg, position uint64, deliveries chan<- delivery) error {
	if !slices.Contains(message.Headers()[nameHeader], s.name) {
		return message.Ack()
	}
	written := make(chan error, 1)
	select {
	case deliveries <- delivery{message, position, written}:
		return <-written
	case <-ctx.Done():
		return ctx.Err()
	}
}
