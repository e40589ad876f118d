package eventserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

// Streams that follow the log lose and repeat nothing while the server is restarted and
// connections are cut.
func TestStreamSurvivesRestarts(t *testing.T) {
	t.Parallel()
	config := fast(t)
	var current atomic.Pointer[eventserver.Server]
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := current.Load(); s != nil {
			s.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(h.Close)
	current.Store(open(t, config))
	c := client(t, h.URL, "alice")

	const rounds, each = 3, 20
	names := []string{"a.b", "bus.task.progress"}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	caughtUp, seen, ended := make(chan struct{}, 100), make(chan string, 100*rounds*each), make(chan error, 1)
	go func() {
		ended <- c.Stream(ctx, events.Query{Names: names, CaughtUp: func() { caughtUp <- struct{}{} }}, func(e events.Event) error {
			seen <- e.ID
			return nil
		})
	}()
	next := func() (id string) {
		select {
		case id = <-seen:
		case err := <-ended: // at the latest with ctx
			t.Fatalf("the stream ended: %v", err)
		}
		return id
	}
	select {
	case <-caughtUp: // without replay: the stream begins here
	case err := <-ended:
		t.Fatalf("the stream did not begin: %v", err)
	}
	var want, got []string
	for round := range rounds {
		for i := range each {
			id, err := retry(t, func() (string, error) {
				d := events.Draft{Name: "a.b"}
				if i%2 == 1 {
					d = task("bus.task.progress", "bus#1", "")
				}
				p, err := c.Publish(t.Context(), d)
				return p.ID, err
			})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, id)
			if i == each/2 {
				got = append(got, next())
				if old := current.Swap(nil); round%2 == 0 {
					old.Close()
					current.Store(open(t, config))
				} else {
					h.CloseClientConnections()
					current.Store(old)
				}
			}
		}
	}
	for last := want[len(want)-1]; !slices.Contains(got, last); {
		got = append(got, next())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// A publish whose answer was lost is repeated, so there can be more.
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("repeated or out of order: %v", got)
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("%s is lost: %v", id, got)
		}
	}
	current.Load().Close()
}

// A stream ends when its token expires, and the client fails with ErrUnauthorized.
func TestTokenExpiryEndsStream(t *testing.T) {
	t.Parallel()
	for _, delivery := range []events.Delivery{events.Broadcast, events.Unicast} {
		config := fast(t)
		config.Now = func() time.Time { return time.Now().Add(5 * time.Second) } // nothing but part of a second is left
		h := start(t, config)
		token, err := eventserver.Mint(secret, eventserver.MintOptions{Subject: "alice", Scopes: allScopes, Lifetime: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for _, disabled := range []bool{true, false} {
			c := events.Client{URL: h.URL, Token: events.StaticToken(token), Retry: events.Retry{Min: time.Millisecond, Disabled: disabled}}
			err = c.Stream(t.Context(), events.Query{Names: []string{"a.b"}, Delivery: delivery}, func(events.Event) error { return nil })
			if !errors.Is(err, events.ErrUnauthorized) {
				t.Error(delivery, err)
			}
		}
	}
}

// Streams and single reads of the log have separate limits: a worker that can follow the
// log can also read a task.
func TestStreamsOfIdentityAreLimited(t *testing.T) {
	t.Parallel()
	config := fast(t)
	config.MaxStreams = 2
	h := start(t, config)
	c := client(t, h.URL, "alice")
	c.Retry.Disabled = true
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	opened := make(chan struct{}, 2)
	for range 2 {
		running.Go(func() {
			_ = c.Stream(ctx, events.Query{Names: []string{"a.b"}, CaughtUp: func() { opened <- struct{}{} }}, nil)
		})
	}
	<-opened
	<-opened
	var e *events.Error
	if err := opens(t, c); !errors.Is(err, events.ErrUnavailable) || !errors.As(err, &e) || e.Status != http.StatusTooManyRequests {
		t.Error(err)
	}
	if err := c.Stream(t.Context(), events.Query{Names: []string{"a.b"}, Once: true}, nil); err != nil {
		t.Error("a single read:", err)
	}
	if err := opens(t, client(t, h.URL, "bob")); err != nil {
		t.Error("another identity:", err)
	}
	cancel()
	running.Wait()
	if _, err := retry(t, func() (int, error) { return 0, opens(t, c) }); err != nil {
		t.Error("after the others ended:", err)
	}
}

// opens opens a stream and closes it again.
func opens(t *testing.T, c *events.Client) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := c.Stream(ctx, events.Query{Names: []string{"a.b"}, CaughtUp: cancel}, func(events.Event) error { return nil })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// A client that does not read is left after the write timeout.
func TestClientThatDoesNotReadIsLeft(t *testing.T) {
	t.Parallel()
	config := fast(t)
	config.WriteTimeout, config.MaxStreams = 100*time.Millisecond, 1
	h := start(t, config)
	c := client(t, h.URL, "alice")
	large := make([]byte, 4<<20)
	for i := range large {
		large[i] = 'x'
	}
	large[0], large[len(large)-1] = '"', '"'
	for range 4 {
		publish(t, c, events.Draft{Name: "a.b", Payload: large})
	}
	connection, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Write([]byte("GET /api/v1/events/stream?name=a.b&replay=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint(t, "alice", allScopes...) + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Read(make([]byte, 1)); err != nil { // the stream is open
		t.Fatal(err)
	}
	c.Retry.Disabled = true
	if _, err := retry(t, func() (int, error) {
		return 0, opens(t, c)
	}); err != nil {
		t.Error("the only stream is still taken:", err)
	}
}

// Serve ends streams and returns when its context ends.
func TestServeStops(t *testing.T) {
	t.Parallel()
	s := open(t, fast(t))
	t.Cleanup(s.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	c := client(t, "http://"+l.Addr().String(), "alice")
	c.Retry.Disabled = true
	err = c.Stream(t.Context(), events.Query{Names: []string{"a.b"}, CaughtUp: cancel}, nil)
	if !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFullDiskRefusesEvents(t *testing.T) {
	t.Parallel()
	config := fast(t)
	config.MinFreeBytes = 1 << 62
	c := client(t, start(t, config).URL, "alice")
	var e *events.Error
	if _, err := c.Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, events.ErrUnavailable) || !errors.As(err, &e) || e.Status != http.StatusServiceUnavailable {
		t.Error(err)
	}
	if got := read(t, c, events.Query{Names: []string{"a.b"}, Replay: true}); len(got) != 0 {
		t.Error(got)
	}
}

// A stream on which nothing happens has heartbeats.
func TestIdleStreamHasHeartbeats(t *testing.T) {
	t.Parallel()
	config := fast(t)
	config.Heartbeat = 10 * time.Millisecond
	h := start(t, config)
	for _, delivery := range []events.Delivery{events.Broadcast, events.Unicast} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+events.Path+"/stream?name=a.b&delivery="+string(delivery), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+mint(t, "alice", allScopes...))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		beats := make([]byte, 5)
		if _, err := io.ReadFull(response.Body, beats); err != nil || string(beats) != "\n\n\n\n\n" {
			t.Errorf("%s: %q %v", delivery, beats, err)
		}
		response.Body.Close()
	}
}
