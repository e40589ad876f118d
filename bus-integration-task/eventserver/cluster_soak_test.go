//go:build soak && linux

package eventserver_test

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

const clusterSteps = 30

// members are clusters of processes, each with a store.
type members struct {
	children  []child
	processes []*process
	clients   []*events.Client
}

// beginCluster starts a process for each config.
func beginCluster(t *testing.T, configs []eventserver.Config) *members {
	t.Helper()
	m := &members{children: make([]child, len(configs)), processes: make([]*process, len(configs)), clients: make([]*events.Client, len(configs))}
	var starting sync.WaitGroup
	for i, c := range configs {
		c.Cluster.Bound.Close()
		c.Cluster.Bound = nil
		m.children[i] = child{Store: c.Store, Cluster: c.Cluster, Reserve: -1}
		starting.Go(func() { m.start(t, i) })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return m
}

func (m *members) start(t *testing.T, i int) {
	p, err := tryBegin(t, m.children[i])
	if err != nil {
		t.Error(err)
		return
	}
	m.processes[i], m.clients[i] = p, client(t, p.url(), "alice")
}

// publishUntilAccepted publishes an event through a server, which may be without a leader.
func publishUntilAccepted(t *testing.T, c *events.Client) string {
	t.Helper()
	id, err := retry(t, func() (string, error) {
		p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
		return p.ID, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sameLog checks that all servers have the same log with the events.
func (m *members) sameLog(t *testing.T, accepted []string) {
	t.Helper()
	all := events.Query{Names: []string{"a.b"}, Replay: true}
	first := ids(read(t, m.clients[0], all))
	if !slices.IsSorted(first) {
		t.Error("out of order:", first)
	}
	for _, id := range accepted {
		if !slices.Contains(first, id) {
			t.Errorf("%s is lost", id)
		}
	}
	for i, c := range m.clients[1:] {
		if got := ids(read(t, c, all)); !slices.Equal(got, first) {
			t.Errorf("server %d has %v, not %v", i+1, got, first)
		}
	}
}

// Each of three servers is killed in turn and returns with its store: the others continue,
// and nothing that was accepted is lost.
func TestClusterServerKilledAndReturns(t *testing.T) {
	t.Parallel()
	m := beginCluster(t, clusterConfigs(t))
	var accepted []string
	for i := range m.processes {
		m.processes[i].kill()
		other := m.clients[(i+1)%3]
		for range 10 {
			accepted = append(accepted, publishUntilAccepted(t, other))
		}
		m.start(t, i)
		accepted = append(accepted, publishUntilAccepted(t, m.clients[i]))
	}
	m.sameLog(t, accepted)
}

// All three servers are killed at once while events are published.
func TestClusterKilledAtOnceKeepsAcceptedEvents(t *testing.T) {
	t.Parallel()
	m := beginCluster(t, clusterConfigs(t))
	var accepted []string
	var mu sync.Mutex
	var publishing sync.WaitGroup
	enough := make(chan struct{})
	for _, c := range m.clients {
		publishing.Go(func() {
			for {
				p, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
				if err != nil {
					return
				}
				mu.Lock()
				if accepted = append(accepted, p.ID); len(accepted) == 60 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	for _, p := range m.processes {
		_ = p.command.Process.Kill()
	}
	publishing.Wait()
	var starting sync.WaitGroup
	for i, p := range m.processes {
		p.kill()
		starting.Go(func() { m.start(t, i) })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	accepted = append(accepted, publishUntilAccepted(t, m.clients[0]))
	m.sameLog(t, accepted)
}

// A server that is cut off from the others accepts nothing, the others continue, and it
// has their log when it is back.
func TestClusterPartition(t *testing.T) {
	t.Parallel()
	configs := clusterConfigs(t)
	cut := &links{connections: map[net.Conn]bool{}}
	for i, c := range configs {
		c.Cluster.Advertise = "127.0.0.1:1" // so that servers use only their routes
		for j, route := range c.Cluster.Routes {
			if to := slices.IndexFunc(configs, func(c eventserver.Config) bool { return c.Cluster.Listen == route }); i == 0 || to == 0 {
				c.Cluster.Routes[j] = cut.proxy(t, route)
			}
		}
	}
	m := beginCluster(t, configs)
	accepted := []string{publishUntilAccepted(t, m.clients[0])}
	cut.set(true)
	for range 5 {
		accepted = append(accepted, publishUntilAccepted(t, m.clients[1]), publishUntilAccepted(t, m.clients[2]))
	}
	alone := *m.clients[0]
	alone.Timeout = 20 * time.Second
	if p, err := alone.Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, events.ErrUnavailable) {
		t.Error("a server without the majority accepted an event:", p, err)
	}
	cut.set(false)
	accepted = append(accepted, publishUntilAccepted(t, m.clients[0]))
	m.sameLog(t, accepted)
}

// links are connections that can be cut.
type links struct {
	mu          sync.Mutex
	cut         bool
	connections map[net.Conn]bool
}

// proxy returns an address that leads to another.
func (l *links) proxy(t *testing.T, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		l.set(true)
	})
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			other, err := net.Dial("tcp", to)
			if err != nil || !l.add(from, other) {
				from.Close()
				if err == nil {
					other.Close()
				}
				continue
			}
			go l.copy(from, other)
			go l.copy(other, from)
		}
	}()
	return listener.Addr().String()
}

func (l *links) add(connections ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range connections {
		if l.cut {
			return false
		}
		l.connections[c] = true
	}
	return true
}

func (l *links) copy(from, to net.Conn) {
	_, _ = io.Copy(from, to)
	from.Close()
	to.Close()
}

func (l *links) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for c := range l.connections {
			c.Close()
		}
		clear(l.connections)
	}
}
