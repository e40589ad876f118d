//go:build linux

package eventserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// A server that is killed while events are published has all accepted ones after a restart.
func TestKilledServerKeepsAcceptedEvents(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	server := begin(t, child{Store: store, Reserve: -1})
	c := client(t, server.url(), "alice")
	var mu sync.Mutex
	var accepted []string
	var publishing sync.WaitGroup
	enough := make(chan struct{})
	for range 4 {
		publishing.Go(func() {
			for {
				p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
				if err != nil {
					return
				}
				mu.Lock()
				if accepted = append(accepted, p.ID); len(accepted) == 40 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	server.kill()
	publishing.Wait()
	c = client(t, begin(t, child{Store: store, Reserve: -1}).url(), "alice")
	got := ids(read(t, c, events.Query{Names: []string{"a.b"}, Replay: true}))
	for _, id := range accepted {
		if !slices.Contains(got, id) {
			t.Errorf("%s is lost", id)
		}
	}
	if !slices.IsSorted(got) {
		t.Error("out of order:", got)
	}
	if next := publish(t, c, events.Draft{Name: "a.b"}); slices.Contains(got, next) {
		t.Error("an ID was given twice:", next)
	}
}

// A disk that becomes full refuses events and loses none, and accepts some again when it
// has space. The disk is a tmpfs that only the server has mounted.
func TestDiskBecomesFull(t *testing.T) {
	t.Parallel()
	server := begin(t, child{Store: t.TempDir(), Disk: 48 << 20, Ballast: 16 << 20, Reserve: 16 << 20})
	c := client(t, server.url(), "alice")
	draft := events.Draft{Name: "a.b", Payload: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}
	var accepted []string
	for {
		p, err := c.Publish(t.Context(), draft)
		var e *events.Error
		if err == nil && len(accepted) < 48 {
			accepted = append(accepted, p.ID)
			continue
		}
		if !errors.As(err, &e) || e.Status != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "the event store is full; the event was not stored") {
			t.Error(err)
		}
		break
	}
	if got := ids(read(t, c, events.Query{Names: []string{"a.b"}, Replay: true})); !slices.Equal(got, accepted) {
		t.Errorf("%v, not %v", got, accepted)
	}
	if len(accepted) < 10 { // of the 16 MiB above the reserve
		t.Errorf("only %d events were accepted", len(accepted))
	}
	if _, err := server.in.Write([]byte("free\n")); err != nil || !server.out.Scan() {
		t.Fatal("no space was freed", err)
	}
	if _, err := retry(t, func() (string, error) {
		p, err := c.Publish(t.Context(), draft)
		return p.ID, err
	}); err != nil {
		t.Error(err)
	}
}

// A body that comes too slowly is a timeout, which can be tried again; one that is cut off
// is not an event.
func TestSlowBodyIsTimeout(t *testing.T) {
	t.Parallel()
	patient, hasty := fast(t), fast(t)
	hasty.ReadTimeout = 50 * time.Millisecond
	const body = `{"name":"a.b"}`
	for _, test := range []struct {
		name  string
		to    *httptest.Server
		close bool
		want  string
	}{{"slow", start(t, hasty), false, "HTTP/1.1 408 "}, {"cut off", start(t, patient), true, "HTTP/1.1 400 "}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", test.to.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "POST /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", mint(t, "alice", allScopes...), len(body), body[:5])
			if test.close {
				if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := io.ReadAll(c)
			if !strings.HasPrefix(string(answer), test.want) {
				t.Errorf("%q %v", answer, err)
			}
			if got := read(t, client(t, test.to.URL, "alice"), events.Query{Names: []string{"a.b"}, Replay: true}); len(got) != 0 {
				t.Error("stored:", got)
			}
		})
	}
}
