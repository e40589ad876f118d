package eventserver

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// lossy loses the first messages on their way to the log, or their answers.
type lossy struct {
	jetstream.JetStream
	messages, answers int
}

func (l *lossy) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if l.messages > 0 {
		l.messages--
		return nil, context.DeadlineExceeded
	}
	ack, err := l.JetStream.PublishMsg(ctx, m, options...)
	if l.answers > 0 {
		l.answers--
		return nil, context.DeadlineExceeded
	}
	return ack, err
}

// An event whose message or answer is lost, as by a leader that is paused, is stored once.
// A condition that another event has broken stays a conflict.
func TestLostEventIsStoredOnce(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", MinSecretBytes))
	s, err := Open(t.Context(), Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	defer h.Close()
	defer s.Close()
	token, err := Mint(secret, MintOptions{Subject: "alice", Scopes: []string{ScopeSend, ScopeListen, "task:admin"}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c := events.Client{URL: h.URL, Token: events.StaticToken(token), Retry: events.Retry{Disabled: true}}
	draft := events.Draft{Name: "bus.task.progress", Payload: []byte(`{"work_ref":"bus#1.1"}`)}
	network := &lossy{JetStream: s.broker.js}
	s.broker.js = network
	last := ""
	for _, lost := range []lossy{{messages: 2}, {answers: 2}, {messages: 1, answers: 1}} {
		network.messages, network.answers = lost.messages, lost.answers
		stored, err := c.Append(t.Context(), draft, last)
		if err != nil || stored.ID == "" || stored.ID == last {
			t.Fatalf("%+v: %v, %v", lost, stored, err)
		}
		last = stored.ID
		network.messages, network.answers = lost.messages, lost.answers
		published, err := c.Publish(t.Context(), draft)
		if err != nil || published.ID == last {
			t.Fatalf("%+v: %v, %v", lost, published, err)
		}
		network.answers = 1
		if _, err := c.Append(t.Context(), draft, last); !errors.Is(err, events.ErrConflict) {
			t.Errorf("%+v: %v", lost, err)
		}
		last = published.ID
	}
	count := 0
	if err := c.Stream(t.Context(), events.Query{Names: []string{draft.Name}, Replay: true, Once: true}, func(events.Event) error { count++; return nil }); err != nil || count != 6 {
		t.Errorf("%d events, %v", count, err)
	}
}
