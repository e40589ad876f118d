package eventserver_test

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

// reserve returns a listener on a port of the loopback that the kernel does not give to
// connections, so that the port is still free when its user binds it again.
func reserve(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 12000+rand.IntN(20000))); err == nil {
			t.Cleanup(func() { l.Close() })
			return l
		}
	}
	t.Fatal("no free port")
	return nil
}

// clusterConfigs are the configs of three servers.
func clusterConfigs(t *testing.T) []eventserver.Config {
	t.Helper()
	const n = 3
	var configs []eventserver.Config
	var addresses []string
	for i := range n {
		l := reserve(t)
		addresses = append(addresses, l.Addr().String())
		c := fast(t)
		c.Cluster = &eventserver.Cluster{Name: cryptorand.Text(), Server: fmt.Sprint("s", i), Listen: addresses[i], Secret: "between servers", Bound: l}
		configs = append(configs, c)
	}
	for i, c := range configs {
		c.Cluster.Name = configs[0].Cluster.Name // no other test can be mistaken for it
		c.Cluster.Routes = slices.Concat(addresses[:i:i], addresses[i+1:])
	}
	return configs
}

// cluster starts three servers in this process and returns a client of each.
func cluster(t *testing.T) ([]*events.Client, []*eventserver.Server) {
	t.Helper()
	configs := clusterConfigs(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	servers := make([]*eventserver.Server, len(configs))
	var starting sync.WaitGroup
	for i, c := range configs {
		starting.Go(func() {
			s, err := eventserver.Open(ctx, c)
			if err != nil {
				t.Error(err)
				return
			}
			servers[i] = s
		})
	}
	starting.Wait()
	var clients []*events.Client
	for _, s := range servers {
		if s == nil {
			t.FailNow()
		}
		clients = append(clients, client(t, serveHTTP(t, s, s).URL, "alice"))
	}
	return clients, servers
}

// In a cluster, one writer wins each step too, and an event without a condition makes a
// condition fail.
func TestClusterDecidesAppends(t *testing.T) {
	t.Parallel()
	clients, _ := cluster(t)
	race(t, clients, 6, clusterSteps)
	mixed(t, clients, clusterSteps)
}

// mixed lets conditional and unconditional writers race, and checks with the log that
// each append that was accepted came directly after the event it named.
func mixed(t *testing.T, clients []*events.Client, steps int) {
	t.Helper()
	const ref = "bus#mixed"
	expected := map[string]string{} // of an appended event: the one before it
	last := ""
	// Other events can be faster than every append of a step.
	for step := 0; step < steps || len(expected) == 0 && step < 50; step++ {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				c := clients[i%len(clients)]
				if i%3 == 0 {
					publish(t, c, task("bus.task.message", ref, fmt.Sprint(step)))
					return
				}
				if p, err := c.Append(t.Context(), task("bus.task.progress", ref, fmt.Sprint(step)), last); err == nil {
					mu.Lock()
					expected[p.ID] = last
					mu.Unlock()
				}
			})
		}
		all.Wait()
		log := read(t, clients[0], events.Query{Names: []string{"bus.task.message", "bus.task.progress"}, WorkRef: ref, Replay: true})
		last = log[len(log)-1].ID
		before := ""
		for _, e := range log {
			if want, ok := expected[e.ID]; ok && want != before {
				t.Fatalf("step %d: %s was accepted after %q, and is after %q", step, e.ID, want, before)
			}
			before = e.ID
		}
	}
	if len(expected) == 0 {
		t.Error("no append was accepted")
	}
}

// A server that waits for the others says what is missing, and gives up in time.
func TestOpenSaysWhatClusterLacks(t *testing.T) {
	t.Parallel()
	config := clusterConfigs(t)[0]
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	_, err := eventserver.Open(ctx, config)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connected to 0 of 2 other servers, and there is no leader") || strings.Contains(err.Error(), config.Cluster.Secret) {
		t.Error(err)
	}

	config.Cluster.Bound = nil
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config.Cluster.Listen, config.Store = taken.Addr().String(), t.TempDir()
	if _, err := eventserver.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}

// One of three servers can end: the others continue, and streams lose nothing.
func TestClusterSurvivesServer(t *testing.T) {
	t.Parallel()
	clients, servers := cluster(t)
	want := []string{publish(t, clients[2], events.Draft{Name: "a.b"})}
	servers[0].Close()
	c := *clients[1]
	for range 10 {
		// The leader may have been on the server that ended.
		id, err := retry(t, func() (string, error) {
			p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
			return p.ID, err
		})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	got := ids(read(t, clients[2], events.Query{Names: []string{"a.b"}, Replay: true}))
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("%s is lost", id)
		}
	}
}
