package eventserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-integration-task/internal/unix"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

// maxMessageBytes is the most that NATS must carry: an event and its headers.
const maxMessageBytes = events.MaxEventBytes + 16<<10

// broker is the connection to JetStream, and the embedded server if there is one.
type broker struct {
	lock     *os.File // of the store of embedded
	embedded *embedded
	conn     *nats.Conn
	js       jetstream.JetStream
}

// openLimit limits the start of a server if the context does not.
const openLimit = time.Minute

// openBroker connects, and creates the stream or checks that it is as it must be.
func openBroker(ctx context.Context, c Config) (*broker, error) {
	if _, limited := ctx.Deadline(); !limited {
		bounded, cancel := context.WithTimeout(ctx, openLimit)
		defer cancel()
		ctx = bounded
	}
	b := new(broker)
	if err := b.open(ctx, c); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *broker) open(ctx context.Context, c Config) (err error) {
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	if limit := b.conn.MaxPayload(); limit < maxMessageBytes {
		return fmt.Errorf("NATS server: its max_payload of %d bytes is too small for events; set max_payload to 8MB", limit)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return err
	}
	return b.ensureStream(ctx, c)
}

func (b *broker) connect(ctx context.Context, c Config) error {
	options := []nats.Option{
		nats.Name("bus events server"), nats.ReconnectBufSize(-1), nats.Timeout(10 * time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.Log(fmt.Sprintf("NATS server: %v", err)) }),
	}
	target := c.NATS
	if c.NATSCredentials != "" {
		credentials, err := readCredentials(c.NATSCredentials)
		if err != nil {
			return fmt.Errorf("NATS credentials: %w", err)
		}
		options = append(options, credentials)
	}
	if c.Store != "" {
		var err error
		if b.lock, err = lockStore(c.Store); err != nil {
			return err
		}
		embedded, err := startEmbedded(ctx, c)
		if err != nil {
			return err
		}
		b.embedded = embedded
		target = ""
		options = append(options, nats.InProcessServer(embedded), nats.IgnoreDiscoveredServers())
		if embedded.password != "" {
			options = append(options, nats.UserInfo(clientUser, embedded.password))
		}
	}
	conn, err := nats.Connect(target, options...)
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("NATS server: it refused the credentials; check the credentials file: %w", err)
	case err != nil:
		return fmt.Errorf("NATS server: %w; check that it is running and its address", err)
	}
	b.conn = conn
	return nil
}

// readCredentials reads a credentials file of NATS, or a line with user:password. On each
// reconnect it is read again.
func readCredentials(path string) (nats.Option, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(text), "BEGIN NATS USER JWT") {
		return nats.UserCredentials(path), nil
	}
	read := func() (user, password string, ok bool) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", "", false
		}
		return strings.Cut(strings.TrimSpace(string(text)), ":")
	}
	if _, _, ok := read(); !ok {
		return nil, fmt.Errorf("%s: neither a credentials file of NATS nor a line with user:password", path)
	}
	return nats.UserInfoHandler(func() (string, string) {
		user, password, _ := read()
		return user, password
	}), nil
}

// patience is how long a NATS server may take to learn of one with JetStream.
const patience = 2 * time.Second

// ensureStream creates the stream, or checks one that exists. In a cluster that is being
// formed it waits until there is a leader.
func (b *broker) ensureStream(ctx context.Context, c Config) error {
	want := streamConfig(c)
	began := time.Now()
	for {
		err := createStream(ctx, b.js, want)
		switch {
		case err == nil || errors.Is(err, errOtherStream):
			return err
		case b.embedded == nil && (errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
			errors.Is(err, nats.ErrNoResponders) && time.Since(began) > patience):
			return fmt.Errorf("NATS server: it has no JetStream for this account; enable it in its configuration: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stream %s: not ready after %s%s: %w (%w)", want.Name, time.Since(began).Round(time.Second), b.embedded.lack(), err, ctx.Err())
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
	if is.MaxBytes != want.MaxBytes || is.Replicas != want.Replicas || is.AllowDirect {
		is.MaxBytes, is.Replicas = want.MaxBytes, want.Replicas
		is.AllowDirect = false // reads of the latest position must be answered by the leader
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
	b.embedded.close()
	if b.lock != nil {
		_ = unix.Unlock(b.lock)
	}
}
