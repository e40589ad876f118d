package eventserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// Server is the Bus Events HTTP API, as an [http.Handler]. It can be used by any number of
// requests at the same time.
type Server struct {
	config Config
	broker *broker
	disk   *disk
	mux    *http.ServeMux

	stopping context.Context // done when streams must end
	stop     context.CancelFunc
	bodies   *slots // of the events that are being published

	grouping sync.Mutex // held while a group is created

	mu      sync.Mutex
	streams map[streamKind]int // how many are open
	open    sync.WaitGroup     // requests
}

// streamKind is what the number of open streams is limited for.
type streamKind struct {
	identity string
	follow   bool
}

// Open starts or connects to JetStream, and creates the stream of events or checks that it
// is as it must be. In a cluster it waits until a majority of the servers has a leader; the
// error says what is missing. It waits until ctx is done, or for a minute if ctx has no
// deadline; ctx has no effect later. The caller must call Close.
func Open(ctx context.Context, c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	b, err := openBroker(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, broker: b, disk: &disk{folder: c.Store, minimum: c.MinFreeBytes}, mux: http.NewServeMux(),
		bodies: newSlots(), streams: map[streamKind]int{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.mux.HandleFunc("POST "+events.Path, s.publish)
	s.mux.HandleFunc("POST "+events.Path+"/append", s.publish)
	s.mux.HandleFunc("GET "+events.Path+"/stream", s.stream)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		respondError(w, problem{http.StatusNotFound, "not_found", "no such method and path", "use POST " + events.Path + " or GET " + events.Path + "/stream"})
	})
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.stopping.Err() != nil {
		s.mu.Unlock()
		respondError(w, errStopping)
		return
	}
	s.open.Add(1)
	s.mu.Unlock()
	defer s.open.Done()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// Serve serves HTTP on a listener until ctx is done. Then it ends the streams, lets
// requests finish for at most ten seconds, and returns nil. It closes the listener, not
// the server.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.endStreams()
	bounded, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// endStreams ends all streams, and refuses further requests.
func (s *Server) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// Close ends all streams, waits for the requests that are running, and closes JetStream.
func (s *Server) Close() {
	s.endStreams()
	s.open.Wait()
	s.broker.close()
}

// enter counts a stream. It reports false if there are too many.
func (s *Server) enter(k streamKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[k] >= s.config.MaxStreams {
		return false
	}
	s.streams[k]++
	return true
}

func (s *Server) leave(k streamKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[k]--; s.streams[k] == 0 {
		delete(s.streams, k)
	}
}
