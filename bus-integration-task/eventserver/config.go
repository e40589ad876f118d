package eventserver

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Defaults of a Config.
const (
	DefaultAudience = "ai.hg.fi/api"
	DefaultStream   = "BUS_EVENTS"
	DefaultPrefix   = "bus.events"
	MinSecretBytes  = 32
)

// Config describes a server. Secret and one of Store and NATS are required.
type Config struct {
	// Secret signs and verifies tokens (HS256). At least MinSecretBytes long.
	Secret []byte
	// Audience that tokens must be for; DefaultAudience if empty.
	Audience string

	// Store is the folder in which an embedded JetStream server keeps the events. It is
	// created for the user alone. Open fails while another server uses the folder.
	Store string
	// SyncEvery is how often the embedded server forces events to the disk. 0 does it
	// before each event is accepted: no accepted event is lost, even with the power. Above
	// 0, accepted events survive the end of the process, also by SIGKILL, and what was
	// accepted since the last sync is lost with the power; in a cluster, only if that
	// happens to a majority of the servers.
	SyncEvery time.Duration
	// MinFreeBytes is the free space of the disk of Store below which events are refused;
	// 0 for 64 MiB, negative for no check. JetStream turns itself off when a disk is
	// full; the reserve prevents this, unless other programs fill the disk.
	MinFreeBytes int64
	// Cluster, if set, joins the embedded server with others.
	Cluster *Cluster

	// NATS is the URL of an existing NATS server or cluster with JetStream, instead of
	// Store. Its max_payload must be at least 5 MB. Credentials belong into the file
	// NATSCredentials, not into the URL: a credentials file of NATS, or a line with
	// user:password. It is read again for each reconnect.
	NATS            string
	NATSCredentials string

	// Stream and Prefix name the JetStream stream and the first words of its subjects;
	// DefaultStream and DefaultPrefix if empty.
	Stream, Prefix string
	// Replicas of the stream; 0 for 1, or 3 in a cluster of an embedded server.
	Replicas int
	// MaxBytes limits the events that are kept; 0 for no limit. When it is reached, events
	// are refused; none is ever removed.
	MaxBytes int64

	// MaxStreams limits the streams of an identity that are open at the same time, and
	// separately those with follow=false, which a client uses to read the log once; 0 for
	// 2048. A worker has one stream, and another one for each container that it waits for.
	MaxStreams int
	// Heartbeat is the longest time without a line on a stream; 0 for 15 seconds.
	Heartbeat time.Duration
	// MaxGroups limits the unicast groups of an identity, each counted once for each event
	// name; 0 for 1000. Groups last, so a new one is refused when they are used up.
	MaxGroups int
	// ReadTimeout is how long a client may take to send an event, and WriteTimeout how long
	// to read what is sent to it; 0 for 30 seconds.
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	// StoreTimeout is how long JetStream may fail to serve a stream, such as while a cluster
	// has no leader, before the stream ends with 503; 0 for 30 seconds.
	StoreTimeout time.Duration
	// RedeliverAfter is after what time a unicast event that was neither delivered nor
	// handed back is delivered again, such as after a crash of the server; 0 for 60
	// seconds. It must be longer than WriteTimeout.
	RedeliverAfter time.Duration

	// Log, if set, receives one line for each failure that is not the client's. It can be
	// called at the same time.
	Log func(line string)
	// Now is the clock for tokens and timestamps; nil for time.Now.
	Now func() time.Time
}

// Cluster joins embedded servers.
type Cluster struct {
	Name   string   // of the cluster; the same on all servers
	Server string   // of this server; unique in the cluster, and the same after a restart
	Listen string   // host:port for the other servers; a loopback or private address
	Routes []string // host:port of the other servers
	// Advertise is the host:port at which servers that learn of this one from another
	// reach Listen; "" for Listen itself.
	Advertise string
	Secret    string       // password between the servers; the same on all
	Bound     net.Listener // unused port for Listen, closed just before it is used; for tests
}

// Check returns why [Open] would refuse the config, or nil. It opens nothing.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns a valid config.
func (c Config) withDefaults() (Config, error) {
	if len(c.Secret) < MinSecretBytes {
		return c, fmt.Errorf("secret: %d bytes: at least %d are needed; set BUS_API_JWT_SECRET to a longer random value", len(c.Secret), MinSecretBytes)
	}
	if (c.Store == "") == (c.NATS == "") {
		return c, errors.New("store: name either a folder for events or the URL of a NATS server")
	}
	if c.NATS != "" && strings.Contains(c.NATS, "@") {
		return c, errors.New("NATS URL: it has credentials; use a credentials file")
	}
	if c.Cluster != nil && (c.Store == "" || c.Cluster.Name == "" || c.Cluster.Server == "" || c.Cluster.Listen == "") {
		return c, errors.New("cluster: it needs a store, a cluster name, a server name and an address to listen on")
	}
	switch {
	case c.NATSCredentials != "" && c.NATS == "":
		return c, errors.New("NATS credentials: they are only for the URL of a NATS server")
	case c.SyncEvery < 0:
		return c, fmt.Errorf("sync every: %v is below 0", c.SyncEvery)
	case c.Replicas < 0 || c.Replicas > 5:
		return c, fmt.Errorf("replicas: %d is not a number from 0 to 5", c.Replicas)
	case c.Replicas > 1 && c.Store != "" && c.Cluster == nil:
		return c, fmt.Errorf("replicas: %d copies need a cluster; join one, or leave replicas out", c.Replicas)
	case c.MaxBytes < 0:
		return c, fmt.Errorf("max bytes: %d is below 0", c.MaxBytes)
	case c.MaxStreams < 0:
		return c, fmt.Errorf("max streams: %d is below 0", c.MaxStreams)
	}
	if c.NATSCredentials != "" {
		if _, err := readCredentials(c.NATSCredentials); err != nil {
			return c, fmt.Errorf("NATS credentials: %w", err)
		}
	}
	set(&c.Audience, DefaultAudience)
	set(&c.Stream, DefaultStream)
	set(&c.Prefix, DefaultPrefix)
	set(&c.MaxStreams, 2048)
	set(&c.MaxGroups, 1000)
	set(&c.Heartbeat, 15*time.Second)
	set(&c.ReadTimeout, 30*time.Second)
	set(&c.WriteTimeout, 30*time.Second)
	set(&c.StoreTimeout, 30*time.Second)
	set(&c.RedeliverAfter, max(60*time.Second, 2*c.WriteTimeout))
	set(&c.MinFreeBytes, 64<<20)
	if c.RedeliverAfter <= c.WriteTimeout {
		return c, errors.New("redeliver after: it must be longer than the write timeout, or events that are being delivered are delivered twice")
	}
	if c.Replicas == 0 {
		c.Replicas = 1
		if c.Cluster != nil {
			c.Replicas = 3
		}
	}
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}
