package eventserver

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// message has only positions.
type message struct {
	jetstream.Msg
	sequence jetstream.SequencePair
}

func (m message) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: m.sequence}, nil
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
	s := &Server{config: Config{Prefix: DefaultPrefix, Now: time.Now, WriteTimeout: time.Minute}}
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
