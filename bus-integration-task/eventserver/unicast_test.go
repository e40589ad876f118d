package eventserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// collector receives events of several streams.
type collector struct {
	mu  sync.Mutex
	got map[string]int // deliveries of an ID
	all chan struct{}
	n   int
}

func collect(n int) *collector {
	return &collector{got: map[string]int{}, all: make(chan struct{}), n: n}
}

func (c *collector) add(e events.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got[e.ID]++; len(c.got) == c.n && c.got[e.ID] == 1 {
		close(c.all)
	}
	return nil
}

func (c *collector) wait(t *testing.T) {
	t.Helper()
	select {
	case <-c.all:
	case <-time.After(30 * time.Second):
		c.mu.Lock()
		defer c.mu.Unlock()
		t.Fatalf("%d events, not %d", len(c.got), c.n)
	}
}

func TestUnicastDeliversToOneOfEachGroup(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	const n = 40
	for i := range n / 2 {
		publish(t, c, task("bus.task.created", fmt.Sprint("bus#", i), ""))
		publish(t, c, task("bus.task.done", fmt.Sprint("bus#", i), "another name"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	groups := map[string]*collector{"a": collect(n), "b": collect(n)}
	for group, collected := range groups {
		for consumer := range 3 {
			running.Go(func() {
				q := events.Query{Names: []string{"bus.task.created"}, Delivery: events.Unicast, Group: group, Consumer: fmt.Sprint(consumer), Replay: true}
				err := c.Stream(ctx, q, func(e events.Event) error {
					if e.Name != "bus.task.created" {
						t.Error("not asked for:", e.Name)
					}
					return collected.add(e)
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
	}
	for i := range n / 2 {
		publish(t, c, task("bus.task.created", fmt.Sprint("bus#", i), ""))
	}
	for group, collected := range groups {
		collected.wait(t)
		for id, times := range collected.got {
			if times != 1 {
				t.Errorf("group %s got %s %d times", group, id, times)
			}
		}
	}
}

func TestUnicastGroupKeepsItsPosition(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	c := client(t, h.URL, "alice")
	q := events.Query{Names: []string{"a.b", "a.c"}, Delivery: events.Unicast, Group: "g", Replay: true}
	first := []string{publish(t, c, events.Draft{Name: "a.b"}), publish(t, c, events.Draft{Name: "a.c"})}
	sorted := func(all []events.Event) []string {
		list := ids(all)
		slices.Sort(list)
		return list
	}
	if got := sorted(read(t, c, q)); !slices.Equal(got, first) {
		t.Error(got)
	}
	if got := read(t, client(t, h.URL, "bob"), q); len(got) != 0 {
		t.Error("another identity", got)
	}
	second := publish(t, c, events.Draft{Name: "a.b"})
	if got := sorted(read(t, c, q)); !slices.Equal(got, []string{second}) {
		t.Error(got)
	}
	q.Group, q.Replay = "new", false
	if got := read(t, c, q); len(got) != 0 {
		t.Error("a new group without replay", got)
	}
	third := publish(t, c, events.Draft{Name: "a.b"})
	if got := sorted(read(t, c, q)); !slices.Equal(got, []string{third}) {
		t.Error(got)
	}
}

// brokenWriter takes the beginning of a stream and fails when an event comes.
type brokenWriter struct {
	http.ResponseWriter
}

func (w brokenWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), `"id"`) {
		return 0, errors.New("the client is gone")
	}
	return w.ResponseWriter.Write(p)
}

func (w brokenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestUnicastDeliversAgainWhatWasCutOff(t *testing.T) {
	t.Parallel()
	config := fast(t)
	s := open(t, config)
	failures := make(chan struct{}, 1)
	h := serveHTTP(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("consumer") == "broken" {
			defer func() { failures <- struct{}{} }()
			s.ServeHTTP(brokenWriter{w}, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	c := client(t, h.URL, "alice")
	id := publish(t, c, events.Draft{Name: "a.b"})
	q := events.Query{Names: []string{"a.b"}, Delivery: events.Unicast, Group: "g", Consumer: "broken", Replay: true}
	broken := *c
	broken.Retry.Disabled = true
	err := broken.Stream(t.Context(), q, func(events.Event) error { t.Error("delivered"); return nil })
	if !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
	<-failures
	q.Consumer = "good"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than the time after which JetStream itself delivers again
	defer cancel()
	got := ""
	err = c.Stream(ctx, q, func(e events.Event) error { got = e.ID; cancel(); return nil })
	if got != id {
		t.Error(got, err)
	}
}

func TestGroupsOfIdentityAreLimited(t *testing.T) {
	t.Parallel()
	config := fast(t)
	config.MaxGroups = 2
	h := start(t, config)
	alice := client(t, h.URL, "alice")
	group := func(c *events.Client, group string, names ...string) error {
		return c.Stream(t.Context(), events.Query{Names: names, Delivery: events.Unicast, Group: group, Once: true}, nil)
	}
	for range 2 { // again: those that exist do not count
		if err := group(alice, "a", "a.b", "a.c"); err != nil {
			t.Error(err)
		}
	}
	if err := group(alice, "b", "a.b"); !errors.Is(err, events.ErrInvalid) || !strings.Contains(err.Error(), "too many unicast groups") {
		t.Error(err)
	}
	if err := group(client(t, h.URL, "bob"), "b", "a.b"); err != nil {
		t.Error("another identity:", err)
	}
}
