//go:build linux

package eventserver_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

const password = "the-password-of-nats"

// withJetStream describes a NATS server on a free port.
func withJetStream(t *testing.T) natsServer {
	t.Helper()
	l := reserve(t)
	defer l.Close()
	return natsServer{Port: l.Addr().(*net.TCPAddr).Port, Password: password, Store: t.TempDir(), MaxPayload: 8 << 20}
}

// external is the config of a server that uses a NATS server. Its log is in the slice.
func external(t *testing.T, address, credentials string) (eventserver.Config, func() string) {
	t.Helper()
	var mu sync.Mutex
	var log []string
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(credentials+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := fast(t)
	c.Store, c.NATS, c.NATSCredentials = "", "nats://"+address, file
	c.Log = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, line)
	}
	return c, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(log, "\n")
	}
}

func TestBadNATSServerIsRefused(t *testing.T) {
	t.Parallel()
	good, bare, narrow := withJetStream(t), withJetStream(t), withJetStream(t)
	bare.Store, narrow.MaxPayload = "", 1<<20
	with, without, small := begin(t, child{NATS: &good}), begin(t, child{NATS: &bare}), begin(t, child{NATS: &narrow})
	closed := reserve(t)
	closed.Close()
	for _, test := range []struct{ name, address, credentials, want string }{
		{"no JetStream", without.address, "bus:" + password, "it has no JetStream"},
		{"small payload", small.address, "bus:" + password, "set max_payload to 8MB"},
		{"other password", with.address, "bus:other-" + password, "it refused the credentials"},
		{"no password", with.address, password, "neither a credentials file"},
		{"not running", closed.Addr().String(), "bus:" + password, "check that it is running"},
		{"credentials in the URL", "bus:" + password + "@" + with.address, "", "use a credentials file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, log := external(t, test.address, test.credentials)
			s, err := eventserver.Open(t.Context(), c)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
			if all := err.Error() + log(); strings.Contains(all, password) {
				t.Error("the password is shown:", all)
			}
		})
	}
	c, _ := external(t, with.address, "")
	c.NATSCredentials = filepath.Join(t.TempDir(), "missing")
	if _, err := eventserver.Open(t.Context(), c); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A NATS server that is killed and returns with its store loses no accepted event, and
// streams continue.
func TestNATSServerGoesAndReturns(t *testing.T) {
	t.Parallel()
	described := withJetStream(t)
	server := begin(t, child{NATS: &described})
	config, log := external(t, server.address, "bus:"+password)
	c := client(t, start(t, config).URL, "alice")
	once := *c
	once.Retry.Disabled = true

	caughtUp, seen := make(chan struct{}, 100), make(chan string, 100)
	go func() {
		_ = c.Stream(t.Context(), events.Query{Names: []string{"a.b"}, CaughtUp: func() { caughtUp <- struct{}{} }}, func(e events.Event) error {
			seen <- e.ID
			return nil
		})
	}()
	<-caughtUp
	want := []string{publish(t, c, events.Draft{Name: "a.b"})}
	server.kill()
	if _, err := once.Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, events.ErrUnavailable) {
		t.Error("without a NATS server:", err)
	}
	if err := once.Stream(t.Context(), events.Query{Names: []string{"a.b"}, Replay: true, Once: true}, nil); !errors.Is(err, events.ErrUnavailable) {
		t.Error("without a NATS server:", err)
	}
	begin(t, child{NATS: &described})
	id, err := retry(t, func() (string, error) {
		p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
		return p.ID, err
	})
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, id)
	if got := ids(read(t, c, events.Query{Names: []string{"a.b"}, Replay: true})); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	for _, id := range want {
		select {
		case got := <-seen:
			if got != id {
				t.Errorf("the stream has %s, not %s", got, id)
			}
		case <-time.After(time.Minute):
			t.Fatal("the stream lacks", id)
		}
	}
	if strings.Contains(log(), password) {
		t.Error("the password is in the log:", log())
	}
}

// A stream that its store cannot serve ends in time with 503.
func TestStreamEndsWithoutStore(t *testing.T) {
	t.Parallel()
	for _, delivery := range []events.Delivery{events.Broadcast, events.Unicast} {
		t.Run(string(delivery), func(t *testing.T) {
			t.Parallel()
			described := withJetStream(t)
			server := begin(t, child{NATS: &described})
			config, _ := external(t, server.address, "bus:"+password)
			config.StoreTimeout, config.Heartbeat = 200*time.Millisecond, 10*time.Millisecond
			h := start(t, config)
			r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+events.Path+"/stream?name=a.b&control=true&delivery="+string(delivery), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+mint(t, "alice", allScopes...))
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			lines := bufio.NewReader(response.Body)
			for text := " "; text != "\n"; { // up to a heartbeat: the stream is open
				if text, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			server.kill()
			rest, err := io.ReadAll(lines)
			if all := strings.TrimSpace(string(rest)); err != nil || !strings.Contains(all, `"control":"ended"`) || !strings.Contains(all, `"status":503`) {
				t.Error(all, err)
			}
		})
	}
}
