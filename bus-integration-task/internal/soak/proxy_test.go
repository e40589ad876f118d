//go:build soak

package soak

import (
	"math/rand/v2"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"
)

// A proxy is the network between one worker and the servers: it passes each connection on
// to a server that listens, and can be cut.
type proxy struct {
	listener net.Listener
	servers  []string
	accepted func(id, name string) // an event that a server has accepted

	mu    sync.Mutex
	state link
	open  map[net.Conn]bool
}

// link is what a proxy does.
type link int

const (
	passing  link = iota
	refusing      // connections are closed at once
	silent        // connections are kept, and nothing passes
)

func newProxy(t testing.TB, servers []string, accepted func(id, name string)) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, servers: servers, accepted: accepted, open: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); p.set(refusing) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// set changes the state. What is open when it begins to pass again or to refuse is cut.
func (p *proxy) set(s link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	if s != silent {
		for c := range p.open {
			c.Close()
		}
	}
}

func (p *proxy) current() link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// keep makes a connection one that is cut, and reports whether it may be used.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return p.state != refusing
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	c.Close()
}

func (p *proxy) serve(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	server := p.dial()
	if server == nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	go p.pass(server, client, nil)
	p.pass(client, server, p.read)
}

// dial connects to one of the servers.
func (p *proxy) dial() net.Conn {
	for _, i := range rand.Perm(len(p.servers)) {
		if c, err := net.DialTimeout("tcp", p.servers[i], time.Second); err == nil {
			return c
		}
	}
	return nil
}

// pass copies until either side is closed, which closes both. While the link is silent,
// it reads nothing.
func (p *proxy) pass(to, from net.Conn, read func([]byte)) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if read != nil {
			read(buffer[:n])
		}
		for p.current() == silent {
			time.Sleep(20 * time.Millisecond)
		}
		if _, e := to.Write(buffer[:n]); e != nil || err != nil {
			return
		}
	}
}

var acceptance = regexp.MustCompile(`"accepted":true,"id":"(evt_\d{19})","name":"([a-z.]+)"`)

// read notes the answers of a server. One that is split over two reads is missed.
func (p *proxy) read(text []byte) {
	for _, m := range acceptance.FindAllSubmatch(text, -1) {
		p.accepted(string(m[1]), string(m[2]))
	}
}
