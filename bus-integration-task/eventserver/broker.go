package eventserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// maxMessageBytes is the most that NATS must carry: an event and its headers.
const maxMessageBytes = events.MaxEventBytes + 16<<10

// broker is the connection to JetStream, and the embedded server if there is one.
type broker struct {
	embedded *natsserver.Server
	conn     *nats.Conn
	js       jetstream.JetStream
}

// openBroker connects, and creates the stream or checks that it is as it must be.
func openBroker(ctx context.Context, c Config) (*broker, error) {
	b := new(broker)
	if err := b.connect(ctx, c); err != nil {
		b.close()
		return nil, err
	}
	if limit := b.conn.MaxPayload(); limit < maxMessageBytes {
		b.close()
		return nil, fmt.Errorf("NATS server: its max_payload of %d bytes is too small for events; set max_payload to 8MB", limit)
	}
	js, err := jetstream.New(b.conn)
	if err != nil {
		b.close()
		return nil, err
	}
	b.js = js
	if err := ensureStream(ctx, js, c); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *broker) connect(ctx context.Context, c Config) error {
	options := []nats.Option{nats.Name("bus events server"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectBufSize(-1)}
	target := c.NATS
	if c.NATSCredentials != "" {
		options = append(options, nats.UserCredentials(c.NATSCredentials))
	}
	if c.Store != "" {
		embedded, err := startEmbedded(c)
		if err != nil {
			return err
		}
		b.embedded = embedded.Server
		target = ""
		options = append(options, nats.InProcessServer(embedded.Server), nats.IgnoreDiscoveredServers())
		if embedded.password != "" {
			options = append(options, nats.UserInfo(clientUser, embedded.password))
		}
	}
	conn, err := nats.Connect(target, options...)
	if err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	b.conn = conn
	return ctx.Err()
}

const clientUser = "bus"

// embeddedServer is a JetStream server in this process.
type embeddedServer struct {
	*natsserver.Server
	password string // of clientUser; "" if the server has no listener for clients
}

// startEmbedded starts a JetStream server. It has no listener for clients, except in a
// cluster: a NATS server accepts other servers only after it listens for clients
// (nats-server v2.15.2, StartRouting). That listener is then a random port of the loopback
// with a random password.
func startEmbedded(c Config) (*embeddedServer, error) {
	if err := os.MkdirAll(c.Store, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
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
	embedded, err := natsserver.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	if c.Cluster != nil && c.Cluster.Bound != nil {
		c.Cluster.Bound.Close()
	}
	embedded.Start()
	if !embedded.ReadyForConnections(30*time.Second) || !embedded.JetStreamEnabled() {
		embedded.Shutdown()
		embedded.WaitForShutdown()
		return nil, fmt.Errorf("embedded NATS server: it did not start with the store %s; check that the folder is writable and not in use", store)
	}
	return &embeddedServer{embedded, options.Password}, nil
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
	o.Cluster = natsserver.ClusterOpts{Name: c.Name, Host: host, Port: number}
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

// ensureStream creates the stream, or checks one that exists. In a cluster that is being
// formed it waits until there is a leader.
func ensureStream(ctx context.Context, js jetstream.JetStream, c Config) error {
	want := streamConfig(c)
	var err error
	for {
		if err = createStream(ctx, js, want); err == nil || errors.Is(err, errOtherStream) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stream %s: %w (%w)", want.Name, err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func streamConfig(c Config) jetstream.StreamConfig {
	limit := c.MaxBytes
	if limit == 0 {
		limit = -1
	}
	return jetstream.StreamConfig{
		Name:        c.Stream,
		Description: "Bus Events",
		Subjects:    []string{c.Prefix + ".>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew, // refuse, never remove
		MaxBytes:    limit,
		MaxMsgs:     -1, MaxMsgsPerSubject: -1, MaxConsumers: -1,
		MaxMsgSize: maxMessageBytes,
		Replicas:   c.Replicas,
		DenyDelete: true,
		DenyPurge:  true,
	}
}

var errOtherStream = errors.New("the stream has another configuration")

func createStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := js.Stream(bounded, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(bounded, want)
		return err
	}
	if err != nil {
		return err
	}
	is := stream.CachedInfo().Config
	if what := streamDifference(is, want); what != "" {
		return fmt.Errorf("stream %s: its %s is not that of an events server; use another stream name: %w", want.Name, what, errOtherStream)
	}
	if is.MaxBytes != want.MaxBytes || is.Replicas != want.Replicas {
		is.MaxBytes, is.Replicas = want.MaxBytes, want.Replicas
		_, err = js.UpdateStream(bounded, is)
	}
	return err
}

// streamDifference names the first setting of a stream with which events would be lost,
// changed or misplaced.
func streamDifference(is, want jetstream.StreamConfig) string {
	for _, check := range []struct {
		same bool
		what string
	}{
		{slices.Equal(is.Subjects, want.Subjects), "subjects"},
		{is.Storage == want.Storage, "storage"},
		{is.Retention == want.Retention, "retention"},
		{is.Discard == want.Discard, "discard policy"},
		{is.MaxMsgs == -1 && is.MaxMsgsPerSubject == -1 && is.MaxAge == 0, "limit of messages or age"},
		{is.MaxMsgSize == -1 || is.MaxMsgSize >= want.MaxMsgSize, "limit of the message size"},
		{is.Mirror == nil && len(is.Sources) == 0, "source or mirror"},
		{is.SubjectTransform == nil, "subject transform"},
		{!is.NoAck, "acknowledgement"},
		{!is.AllowMsgTTL && !is.AllowRollup, "message expiry or rollup"},
	} {
		if !check.same {
			return check.what
		}
	}
	return ""
}

func (b *broker) close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.embedded != nil {
		b.embedded.Shutdown()
		b.embedded.WaitForShutdown()
	}
}
