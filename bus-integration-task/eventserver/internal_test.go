package eventserver

import (
	"context"
	"errors"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// message is an event at a position.
type message struct {
	jetstream.Msg
	sequence jetstream.SequencePair
}

func (m message) Headers() nats.Header { return nats.Header{nameHeader: {"a.b"}} }

func (m message) InProgress() error { return nil }

func (m message) Data() []byte { return []byte(`{"name":"a.b"}`) }

func (m message) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: m.sequence, NumPending: 1}, nil
}

// A cursor passes each position once, and fails if a consumer loses, repeats or reorders a
// message.
func TestCursorKeepsOrder(t *testing.T) {
	t.Parallel()
	type step struct {
		consumer, stream uint64
		next, fails      bool
	}
	for name, steps := range map[string][]step{
		"in order":           {{1, 11, true, false}, {2, 15, true, false}},
		"lost":               {{1, 11, true, false}, {3, 15, false, true}},
		"repeated":           {{1, 11, true, false}, {1, 11, false, true}},
		"reordered":          {{2, 15, false, true}},
		"already read":       {{1, 10, false, false}, {2, 11, true, false}},
		"position goes back": {{1, 15, true, false}, {2, 11, false, false}, {3, 16, true, false}},
	} {
		c := cursor{at: 10}
		for _, s := range steps {
			at := c.at
			_, next, err := c.take(message{sequence: jetstream.SequencePair{Consumer: s.consumer, Stream: s.stream}})
			if next != s.next || (err != nil) != s.fails {
				t.Errorf("%s: %+v: %v, %v", name, s, next, err)
			}
			if want := max(at, s.stream); s.next && c.at != want || !s.next && c.at != at {
				t.Errorf("%s: %+v: at %d", name, s, c.at)
			}
		}
	}
}

// The server allocates the body of a large event, its payload and the message: three times
// its size, and five times with the race detector.
func TestLargeEventIsCopiedTwice(t *testing.T) { // not parallel: it counts what the process allocates
	s := &Server{config: Config{Prefix: DefaultPrefix, Now: time.Now, ReadTimeout: time.Minute}}
	body := `{"name":"a.b","payload":"` + strings.Repeat("x", events.MaxPayloadBytes-2) + `"}`
	r := httptest.NewRequest("POST", events.Path, strings.NewReader(body))
	who := identity{name: "alice", scopes: []string{ScopeSend}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := s.message(httptest.NewRecorder(), r, who)
	runtime.ReadMemStats(&after)
	if err != nil || len(m.Data) < events.MaxPayloadBytes {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 11*events.MaxPayloadBytes/2 {
		t.Errorf("%d bytes for an event of %d", got, events.MaxPayloadBytes)
	}
}

// A read that does not follow the log ends at the position that was the last one when it
// began, and does not send what came later.
func TestReadEndsWhereItBegan(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := &Server{config: Config{Heartbeat: time.Second, WriteTimeout: time.Second}}
	f := follower{cursor: &cursor{server: s, at: 10}, out: newLines(w, time.Second, true), query: query{names: []string{"a.b"}}, last: 12, tick: time.NewTicker(time.Hour)}
	for i, stream := range []uint64{11, 13} {
		if f.complete {
			t.Error("complete before", stream)
		}
		if err := f.send(t.Context(), message{sequence: jetstream.SequencePair{Consumer: uint64(i + 1), Stream: stream}}); err != nil {
			t.Error(err)
		}
	}
	if want := `{"id":"evt_0000000000000000011","name":"a.b"}` + "\n" + `{"control":"caught_up"}` + "\n" + `{"control":"ended"}` + "\n"; w.Body.String() != want || !f.complete {
		t.Errorf("%q", w.Body)
	}
}

// Streams continue when JetStream has lost their consumers.
func TestStreamSurvivesLostConsumer(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", MinSecretBytes))
	s, err := Open(t.Context(), Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	defer h.Close()
	defer s.Close()
	token, err := Mint(secret, MintOptions{Subject: "alice", Scopes: []string{ScopeSend, ScopeListen}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c := events.Client{URL: h.URL, Token: events.StaticToken(token), Retry: events.Retry{Disabled: true}}
	seen, ended := make(chan string), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- c.Stream(ctx, events.Query{Names: []string{"a.b"}, Replay: true}, func(e events.Event) error { seen <- e.ID; return nil })
	}()
	for range 3 {
		p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-seen:
			if got != p.ID {
				t.Errorf("%s, not %s", got, p.ID)
			}
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatal("an event does not come")
		}
		log, err := s.openLog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name := range log.ConsumerNames(t.Context()).Name() {
			if err := log.DeleteConsumer(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// laggingLog is a log whose leader has an event that its consumer does not have.
type laggingLog struct {
	jetstream.Stream
	position uint64
}

func (l laggingLog) GetMsg(_ context.Context, from uint64, _ ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if from > l.position {
		return nil, jetstream.ErrMsgNotFound
	}
	return &jetstream.RawStreamMsg{Sequence: l.position}, nil
}

func (l laggingLog) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: l.position}}
}

// laggingConsumer has given all that it has.
type laggingConsumer struct {
	jetstream.Consumer
	delivered uint64
}

func (c laggingConsumer) Info(context.Context) (*jetstream.ConsumerInfo, error) {
	return &jetstream.ConsumerInfo{Delivered: jetstream.SequenceInfo{Stream: c.delivered}, Config: jetstream.ConsumerConfig{OptStartSeq: 1}}, nil
}

// In a cluster, the server of a consumer can be behind the leader. A read is not complete
// before the last event has come.
func TestReadIsNotCompleteWhileConsumerLags(t *testing.T) {
	t.Parallel()
	log := laggingLog{position: 12}
	for _, test := range []struct {
		at       uint64
		complete bool
	}{{10, false}, {11, false}, {12, true}} {
		f := follower{cursor: &cursor{server: &Server{config: Config{Heartbeat: time.Second}}, log: log, subjects: []string{"s"}, at: test.at},
			out: newLines(httptest.NewRecorder(), time.Second, true), last: 12, tick: time.NewTicker(time.Hour)}
		if err := f.catchUp(t.Context(), true); err != nil || f.complete != test.complete {
			t.Errorf("broadcast at %d: %v, %v", test.at, f.complete, err)
		}
		f.noticed = f.noticed.Add(-storeAnswer)
		if !test.complete && f.check(t.Context()) == nil {
			t.Errorf("broadcast at %d: still absent, and no other consumer is tried", test.at)
		}
		s := source{log: log, subjects: []string{"s"}, consumer: laggingConsumer{delivered: test.at}}
		if done, err := s.isExhausted(t.Context()); done != test.complete || (err == nil) != test.complete {
			t.Errorf("unicast at %d: %v, %v", test.at, done, err)
		}
	}
}

// A unicast event is acknowledged once it has been written.
func TestWrittenEventIsAcknowledged(t *testing.T) {
	t.Parallel()
	m := &acknowledged{}
	d := delivery{message: m, position: 7}
	if err := d.write(t.Context(), newLines(httptest.NewRecorder(), time.Second, false)); err != nil || m.times != 1 {
		t.Error(m.times, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.write(canceled, newLines(httptest.NewRecorder(), time.Second, false)); err == nil || m.times != 1 {
		t.Error("the client is gone:", m.times, err)
	}
}

// acknowledged counts its acknowledgements.
type acknowledged struct {
	message
	times int
}

func (m *acknowledged) Ack() error { m.times++; return nil }

// waiting is a message that counts how often its time for redelivery was extended.
type waiting struct {
	message
	extended chan struct{}
}

func (w waiting) InProgress() error {
	w.extended <- struct{}{}
	return nil
}

func (w waiting) Ack() error { return nil }

// An event that waits while others are written is not delivered to another stream
// meanwhile, and its time begins again with its write.
func TestWaitingEventIsNotRedelivered(t *testing.T) {
	t.Parallel()
	s := source{server: &Server{config: Config{RedeliverAfter: 3 * time.Millisecond}}, name: "a.b"}
	m := waiting{extended: make(chan struct{})}
	deliveries, passed := make(chan delivery), make(chan error, 1)
	go func() { passed <- s.pass(t.Context(), m, deliveries) }()
	for range 3 {
		<-m.extended
	}
	var d delivery
	for taken := false; !taken; {
		select {
		case d = <-deliveries:
			taken = true
		case <-m.extended:
		}
	}
	written := make(chan error)
	go func() { written <- d.write(t.Context(), newLines(httptest.NewRecorder(), time.Second, false)) }()
	<-m.extended
	d.written <- <-written
	if err := <-passed; err != nil {
		t.Error(err)
	}
}

// An identity that publishes slowly leaves slots to the others.
func TestIdentityCannotTakeAllSlots(t *testing.T) {
	t.Parallel()
	s := newSlots()
	over, cancel := context.WithCancel(t.Context())
	var releases []func()
	take := func(ctx context.Context, identity string) bool {
		release, free := s.take(ctx, identity)
		if free {
			releases = append(releases, release)
		}
		return free
	}
	for range maxBodiesOfIdentity {
		if !take(t.Context(), "slow") {
			t.Fatal("a slot is missing")
		}
	}
	if !take(t.Context(), "other") {
		t.Error("another identity has no slot")
	}
	cancel()
	if take(over, "slow") {
		t.Error("an identity has a slot too many")
	}
	for _, release := range releases {
		release()
	}
	if len(s.own) != 0 || len(s.all) != 0 {
		t.Errorf("%d identities and %d slots are left", len(s.own), len(s.all))
	}
}
