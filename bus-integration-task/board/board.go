package board

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-integration-task/task"
)

// Log is the event log that a board shows. Its methods are called concurrently.
type Log interface {
	// Follow calls each with every event of every task, in the order of the log, from
	// the first event on and then as events are appended. It returns when ctx ends or
	// with an error. The board calls it again after an error, so events that each has
	// seen may be repeated. If Follow reconnects by itself, it calls lost when it has lost
	// the log, and caughtUp or each when it has it again.
	Follow(ctx context.Context, each func(task.Event), caughtUp func(), lost func(error)) error
	// Task calls each with the events that one task has now, in the order of the log,
	// and returns.
	Task(ctx context.Context, workRef string, each func(task.Event)) error
	// Publish appends an event.
	Publish(ctx context.Context, name string, payload task.Payload) error
}

// Options configure [Serve]. Only Log is required.
type Options struct {
	Log Log
	// Listen is a loopback address with a port, "127.0.0.1:0" if empty. Port 0 is a
	// free port.
	Listen string
	// Published allows other addresses than those of the loopback. It is for a container
	// whose port is published on the loopback of its host, and on nothing else. Requests
	// must name a loopback address or localhost as their host all the same.
	Published bool
	// Started is called once, with the address of the page, which includes the token.
	Started func(url string)
	// Warn reports what goes wrong while the server runs, nil for no reports. It may be
	// called concurrently.
	Warn func(text string)
	// Sender is the name that events from the page carry as their sender.
	Sender string
	// MaxEnded is how many ended tasks are kept, the latest ones; 1000 if 0.
	MaxEnded int
	// MaxOpen is how many tasks that wait for a worker the page lists, the oldest ones;
	// 5000 if 0. All of them are counted.
	MaxOpen int
}

// Limits of one request and of all.
const (
	maxStreams    = 16               // pages that are connected at a time
	maxActionSize = 256 << 10        // bytes of a posted action
	writeTimeout  = 30 * time.Second // for one update, also to a slow browser
	askTimeout    = 20 * time.Second // for the log to publish an event or to read a task
	endTimeout    = 2 * time.Second  // for requests to finish when the server ends
)

// Serve shows the tasks of a log until ctx ends, and then returns nil. A Listen address
// that is not a loopback address, and options without a log, are errors of kind
// [agent.ErrUsage]. The memory of the server is bounded by the tasks that have not
// ended, by Options.MaxEnded and by the number of connected pages.
func Serve(ctx context.Context, o Options) error {
	listen, err := o.listenAddress()
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("cannot serve the board: %w; use another --listen address", err)
	}
	s := newServer(o, rand.Text())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following := make(chan struct{})
	go func() { defer close(following); s.follow(ctx) }()
	defer func() { cancel(); <-following }()

	web := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          log.New(warnings(o.Warn), "", 0),
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	if o.Started != nil {
		o.Started("http://" + o.visible(listener.Addr()) + "/" + s.token + "/")
	}
	select {
	case err = <-served:
		return fmt.Errorf("the board ended: %w", err)
	case <-ctx.Done():
	}
	bound, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	if web.Shutdown(bound) != nil {
		_ = web.Close()
	}
	if err = <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the board ended: %w", err)
	}
	return nil
}

// Check returns why [Serve] would refuse the options, or nil. It opens nothing.
func (o Options) Check() error {
	_, err := o.listenAddress()
	return err
}

// visible returns the address at which a browser finds the board.
func (o Options) visible(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && o.Published {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return a.String()
}

// listenAddress checks the options and returns the address to listen on.
func (o Options) listenAddress() (string, error) {
	if o.Log == nil {
		return "", agent.Usagef("a board needs a log")
	}
	if o.Listen == "" {
		return "127.0.0.1:0", nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", agent.Usagef("--listen %q: not an address with a port; use 127.0.0.1:PORT", o.Listen)
	}
	if host == "localhost" {
		host = "127.0.0.1" // what else the name resolves to is not checked
	}
	if address, err := netip.ParseAddr(host); !o.Published && (err != nil || !address.IsLoopback()) {
		return "", agent.Usagef("--listen %q: the board shows what agents do and answers for you, so it listens on loopback only; use 127.0.0.1:PORT, and ssh -L to reach it from elsewhere", o.Listen)
	}
	return net.JoinHostPort(host, port), nil
}

// warnings writes the lines of a logger to a function.
type warnings func(string)

func (w warnings) Write(line []byte) (int, error) {
	if w != nil {
		w(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}
