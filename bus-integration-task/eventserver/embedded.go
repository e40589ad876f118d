package eventserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

const clientUser = "bus"

// embedded is a JetStream server in this process.
type embedded struct {
	*natsserver.Server
	cluster  *Cluster
	log      *natsLog
	password string // of clientUser; "" if the server has no listener for clients
}

// startEmbedded starts a JetStream server. It has no listener for clients, except in a
// cluster: a NATS server accepts other servers only after it listens for clients
// (nats-server v2.15.2, StartRouting). That listener is then a random port of the loopback
// with a random password.
func startEmbedded(ctx context.Context, c Config) (*embedded, error) {
	store, err := filepath.Abs(c.Store)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	options := &natsserver.Options{
		ServerName: "bus-events",
		DontListen: true,
		NoSigs:     true,
		NoLog:      true,
		JetStream:  true,
		StoreDir:   store,
		MaxPayload: 8 << 20,
		// The stream has the limit. Without a value, JetStream would allow three quarters
		// of what is free at the start.
		JetStreamMaxStore: 1 << 60,
		SyncInterval:      c.SyncEvery,
		SyncAlways:        c.SyncEvery == 0,
	}
	if c.Cluster != nil {
		if err := joinCluster(options, c.Cluster); err != nil {
			return nil, err
		}
		options.DontListen, options.Host, options.Port = false, "127.0.0.1", natsserver.RANDOM_PORT
		options.Username, options.Password = clientUser, rand.Text()
	}
	server, err := natsserver.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	e := &embedded{server, c.Cluster, &natsLog{to: c.Log}, options.Password}
	server.SetLogger(e.log, false, false)
	if c.Cluster != nil && c.Cluster.Bound != nil {
		c.Cluster.Bound.Close()
	}
	server.Start()
	for ; !server.ReadyForConnections(50*time.Millisecond) || !server.JetStreamEnabled(); time.Sleep(10 * time.Millisecond) {
		if err := errors.Join(e.log.failure(), ctx.Err()); err != nil {
			e.close()
			return nil, fmt.Errorf("embedded NATS server: it did not start with the store %s; check that the folder is writable and not in use: %w", store, err)
		}
	}
	return e, nil
}

func joinCluster(o *natsserver.Options, c *Cluster) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("cluster address: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("cluster address: %w", err)
	}
	o.ServerName = c.Server
	o.Cluster = natsserver.ClusterOpts{Name: c.Name, Host: host, Port: number, Advertise: c.Advertise}
	var user *url.Userinfo
	if c.Secret != "" {
		o.Cluster.Username, o.Cluster.Password = "bus", c.Secret
		user = url.UserPassword("bus", c.Secret)
	}
	for _, route := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", User: user, Host: route})
	}
	return nil
}

// lack says what a cluster lacks, for the error of a server that waits for it.
func (e *embedded) lack() string {
	if e == nil || e.cluster == nil {
		return ""
	}
	connected := map[string]bool{}
	if routes, err := e.Routez(nil); err == nil {
		for _, route := range routes.Routes {
			connected[route.RemoteName] = true
		}
	}
	leader := "there is no leader"
	if info, err := e.Jsz(nil); err == nil && info.Meta != nil && info.Meta.Leader != "" {
		leader = "the leader is " + info.Meta.Leader
	}
	return fmt.Sprintf(": cluster %s: connected to %d of %d other servers, and %s; start a majority of the servers, and check that their routes, cluster names and secrets agree",
		e.cluster.Name, len(connected), len(e.cluster.Routes), leader)
}

func (e *embedded) close() {
	if e == nil {
		return
	}
	e.Shutdown()
	e.WaitForShutdown()
	e.log.close()
}

// natsLog passes the errors of an embedded server on, until it is closed, and keeps the
// first one that the server cannot work with.
type natsLog struct {
	mu    sync.Mutex
	to    func(string) // nil after close
	fatal error
}

func (l *natsLog) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		l.to("NATS: " + strings.Join(strings.Fields(fmt.Sprintf(format, v...)), " "))
	}
}

func (l *natsLog) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = fmt.Errorf(format, v...)
	}
}

func (*natsLog) Noticef(string, ...any) {}
func (*natsLog) Warnf(string, ...any)   {}
func (*natsLog) Debugf(string, ...any)  {}
func (*natsLog) Tracef(string, ...any)  {}

func (l *natsLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *natsLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = nil
}
