package eventserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

var allScopes = []string{"events:send", "events:listen", "task:admin", "container:admin"}

// fast is a config for tests, whose disk may be slow.
func fast(t *testing.T) eventserver.Config {
	t.Helper()
	return eventserver.Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute, MinFreeBytes: -1, Heartbeat: time.Second, Log: func(line string) { t.Log(line) }}
}

// start runs a server until the test ends.
func start(t *testing.T, c eventserver.Config) *httptest.Server {
	t.Helper()
	s := open(t, c)
	return serveHTTP(t, s, s)
}

func open(t *testing.T, c eventserver.Config) *eventserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := eventserver.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mint(t *testing.T, subject string, scopes ...string) string {
	t.Helper()
	token, err := eventserver.Mint(secret, eventserver.MintOptions{Subject: subject, Scopes: scopes, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func client(t *testing.T, url, subject string) *events.Client {
	t.Helper()
	return &events.Client{URL: url, Token: events.StaticToken(mint(t, subject, allScopes...)), Source: "test", Timeout: 2 * time.Minute,
		Retry: events.Retry{Min: time.Millisecond, Max: 20 * time.Millisecond}}
}

// task returns an event of a task.
func task(name, ref, text string) events.Draft {
	payload, _ := json.Marshal(map[string]string{"work_ref": ref, "text": text})
	return events.Draft{Name: name, Payload: payload}
}

func publish(t *testing.T, c *events.Client, d events.Draft) string {
	t.Helper()
	p, err := c.Publish(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// read returns all events of a query.
func read(t *testing.T, c *events.Client, q events.Query) []events.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	q.Once = true
	var all []events.Event
	if err := c.Stream(ctx, q, func(e events.Event) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func ids(all []events.Event) []string {
	var list []string
	for _, e := range all {
		list = append(list, e.ID)
	}
	return list
}

func TestPublishedEventIsReplayed(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	before := time.Now().Add(-time.Second)
	id := publish(t, c, events.Draft{Name: "example.ping", CorrelationID: "c-1", Payload: json.RawMessage("{\"a\": 1,\n \"b\": \"<\u2028>\"}"),
		Metadata: events.Metadata{"bus.recipient.id": "r", "identity_id": "mallory", "owner_identity_id": "mallory"}, Error: &events.Failure{Code: "x", Message: "y"}})
	all := read(t, c, events.Query{Names: []string{"example.ping"}, Replay: true})
	if len(all) != 1 {
		t.Fatal(all)
	}
	e := all[0]
	if e.ID != id || id != events.FormatID(1) || e.Version != "v1" || e.Name != "example.ping" || e.CorrelationID != "c-1" || e.Source != "test" ||
		string(e.Payload) != "{\"a\":1,\"b\":\"<\u2028>\"}" || e.Error == nil || *e.Error != (events.Failure{Code: "x", Message: "y"}) {
		t.Errorf("%+v", e)
	}
	if e.Timestamp.Before(before) || e.Timestamp.Location() != time.UTC {
		t.Error(e.Timestamp)
	}
	if len(e.Metadata) != 2 || e.Metadata["identity_id"] != "alice" || e.Metadata["bus.recipient.id"] != "r" {
		t.Error(e.Metadata)
	}
}

func TestOrderIsKeptAcrossNamesAndTasks(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	var want, second []string
	for i := range 30 {
		switch i % 3 {
		case 0:
			want = append(want, publish(t, c, task("bus.task.created", fmt.Sprintf("bus#%d", i), "")))
		case 1:
			id := publish(t, c, task("bus.task.progress", "bus#1", ""))
			want, second = append(want, id), append(second, id)
		case 2:
			want = append(want, publish(t, c, events.Draft{Name: "other.name"}))
		}
		publish(t, c, task("bus.task.message", "bus#1", "not asked for"))
	}
	names := []string{"bus.task.created", "bus.task.progress", "other.name"}
	for _, test := range []struct {
		name  string
		query events.Query
		want  []string
	}{
		{"several names", events.Query{Names: names, Replay: true}, want},
		{"after", events.Query{Names: names, AfterID: want[9]}, want[10:]},
		{"after the last", events.Query{Names: names, AfterID: want[29]}, nil},
		{"one task", events.Query{Names: []string{"bus.task.progress"}, WorkRef: "bus#1", Replay: true}, second},
		{"without replay", events.Query{Names: names}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := ids(read(t, c, test.query)); !slices.Equal(got, test.want) {
				t.Errorf("%v, not %v", got, test.want)
			}
		})
	}
}

func TestIdentitySeesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	alice, bob := client(t, h.URL, "alice"), client(t, h.URL, "bob")
	a := publish(t, alice, task("bus.task.created", "bus#1", "of alice"))
	b := publish(t, bob, task("bus.task.created", "bus#1", "of bob"))
	q := events.Query{Names: []string{"bus.task.created"}, Replay: true}
	if got := ids(read(t, alice, q)); !slices.Equal(got, []string{a}) {
		t.Error(got)
	}
	q.WorkRef = "bus#1"
	if got := ids(read(t, bob, q)); !slices.Equal(got, []string{b}) {
		t.Error(got)
	}
	// A condition is about the own task of this name too.
	if _, err := bob.Append(t.Context(), task("bus.task.claimed", "bus#1", ""), a); !errors.Is(err, events.ErrConflict) {
		t.Error(err)
	}
}

func TestAppendIsConditional(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	first, err := c.Append(t.Context(), task("bus.task.created", "bus#1", ""), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Append(t.Context(), task("bus.task.created", "bus#1", ""), "")
	var e *events.Error
	if !errors.Is(err, events.ErrConflict) || !errors.As(err, &e) || e.LastID != first.ID {
		t.Error(err)
	}
	publish(t, c, task("bus.task.created", "bus#2", "another task does not count"))
	second, err := c.Append(t.Context(), task("bus.task.claimed", "bus#1", ""), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	third := publish(t, c, task("bus.task.message", "bus#1", "without a condition"))
	if _, err := c.Append(t.Context(), task("bus.task.done", "bus#1", ""), second.ID); !errors.Is(err, events.ErrConflict) {
		t.Error(err)
	}
	if _, err := c.Append(t.Context(), task("bus.task.done", "bus#1", ""), third); err != nil {
		t.Error(err)
	}
	for name, d := range map[string]events.Draft{"no task": {Name: "example.ping"}, "no reference": {Name: "bus.task.created", Payload: json.RawMessage(`{}`)}} {
		if _, err := c.Append(t.Context(), d, ""); !errors.Is(err, events.ErrInvalid) {
			t.Error(name, err)
		}
	}
}

// Twenty writers race for each of the next events of a task.
func TestOneClaimWins(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	race(t, []*events.Client{client(t, h.URL, "alice")}, 20, 20)
}

// race lets writers append to a task at the same time, and checks that one wins each step.
func race(t *testing.T, clients []*events.Client, writers, steps int) {
	t.Helper()
	last := ""
	for step := range steps {
		won := make(chan string, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				p, err := clients[i%len(clients)].Append(t.Context(), task("bus.task.claimed", "bus#race", fmt.Sprint(step, i)), last)
				switch {
				case err == nil:
					won <- p.ID
				case !errors.Is(err, events.ErrConflict):
					t.Errorf("writer %d: %v", i, err)
				}
			})
		}
		all.Wait()
		close(won)
		if len(won) != 1 {
			t.Fatalf("step %d: %d writers won", step, len(won))
		}
		last = <-won
	}
	if got := read(t, clients[0], events.Query{Names: []string{"bus.task.claimed"}, WorkRef: "bus#race", Replay: true}); len(got) != steps {
		t.Errorf("%d events after %d steps", len(got), steps)
	}
}

func TestStoreBelongsToOneServer(t *testing.T) {
	t.Parallel()
	c := fast(t)
	first := open(t, c)
	if second, err := eventserver.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another server uses "+c.Store) {
		second.Close()
		t.Fatal(err)
	}
	first.Close()
	open(t, c).Close()
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*eventserver.Config){
		"secret":     func(c *eventserver.Config) { c.Secret = nil },
		"folder":     func(c *eventserver.Config) { c.Store = "" },
		"URL":        func(c *eventserver.Config) { c.NATSCredentials = "file" },
		"sync every": func(c *eventserver.Config) { c.SyncEvery = -1 },
		"replicas":   func(c *eventserver.Config) { c.Replicas = -1 },
		"cluster":    func(c *eventserver.Config) { c.Replicas = 2 },
		"max bytes":  func(c *eventserver.Config) { c.MaxBytes = -1 },
	} {
		c := eventserver.Config{Secret: secret, Store: "store"}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&c); c.Check() == nil || !strings.Contains(c.Check().Error(), want) {
			t.Errorf("%s: %v", want, c.Check())
		}
	}
	if err := (eventserver.Config{Secret: secret, NATS: "nats://a", Replicas: 3}).Check(); err != nil {
		t.Errorf("replicas in the cluster of others: %v", err)
	}
}

func TestRestartKeepsEventsAndContinuesIDs(t *testing.T) {
	t.Parallel()
	c := fast(t)
	c.SyncEvery = 0
	first := open(t, c)
	h := httptest.NewServer(first)
	id1 := publish(t, client(t, h.URL, "alice"), events.Draft{Name: "example.ping"})
	first.Close()
	h.Close()
	if info, err := os.Stat(c.Store); err != nil || !info.IsDir() {
		t.Fatal(err)
	}

	a := client(t, start(t, c).URL, "alice")
	id2 := publish(t, a, events.Draft{Name: "example.ping"})
	if got := ids(read(t, a, events.Query{Names: []string{"example.ping"}, Replay: true})); !slices.Equal(got, []string{id1, id2}) || id2 != events.FormatID(2) {
		t.Error(got, id1, id2)
	}
}

func TestLargestEvent(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	payload := json.RawMessage(`"` + strings.Repeat("<", events.MaxPayloadBytes-2) + `"`)
	id := publish(t, c, events.Draft{Name: "large.event", Payload: payload})
	all := read(t, c, events.Query{Names: []string{"large.event"}, Replay: true})
	if len(all) != 1 || all[0].ID != id || string(all[0].Payload) != string(payload) {
		t.Error("not the event that was published", ids(all))
	}
	payload = json.RawMessage(`"` + strings.Repeat("x", events.MaxPayloadBytes-1) + `"`)
	_, err := c.Publish(t.Context(), events.Draft{Name: "large.event", Payload: payload})
	var e *events.Error
	if !errors.Is(err, events.ErrInvalid) || !errors.As(err, &e) || e.Status != http.StatusRequestEntityTooLarge {
		t.Error(err)
	}
}

func TestMaxBytesRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	c := fast(t)
	c.MaxBytes = 64 << 10
	h := start(t, c)
	a := client(t, h.URL, "alice")
	draft := events.Draft{Name: "example.ping", Payload: json.RawMessage(`"` + strings.Repeat("x", 10<<10) + `"`)}
	var accepted []string
	for {
		p, err := a.Publish(t.Context(), draft)
		if err != nil {
			if !errors.Is(err, events.ErrUnavailable) || !strings.Contains(err.Error(), "full") {
				t.Error(err)
			}
			break
		}
		if accepted = append(accepted, p.ID); len(accepted) > 10 {
			t.Fatal("no limit")
		}
	}
	if got := ids(read(t, a, events.Query{Names: []string{"example.ping"}, Replay: true})); !slices.Equal(got, accepted) || len(got) == 0 {
		t.Error(got, accepted)
	}
}

// serveHTTP serves a handler over a server until the test ends.
func serveHTTP(t *testing.T, s *eventserver.Server, handler http.Handler) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		s.Close()
		h.Close()
	})
	return h
}

// retry tries for a minute.
func retry[T any](t *testing.T, try func() (T, error)) (T, error) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for {
		value, err := try()
		if err == nil || time.Now().After(limit) {
			return value, err
		}
	}
}

// The server itself begins after the event that was named; the client would only hide it.
func TestStreamBeginsAfterID(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	var all []string
	for range 3 {
		all = append(all, publish(t, c, events.Draft{Name: "a.b"}))
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+events.Path+"/stream?name=a.b&follow=false&after_id="+all[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+mint(t, "alice", allScopes...))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if lines := strings.Fields(string(text)); err != nil || len(lines) != 1 || !strings.Contains(lines[0], all[2]) {
		t.Errorf("%q %v", text, err)
	}
}
