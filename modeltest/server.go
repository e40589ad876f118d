package modeltest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
)

// defaultModels is what a server lists by default.
var defaultModels = []string{"gpt-5.5", "gpt-oss:20b"}

// A Server is a scripted model server. Start makes one; its methods may be
// called by several goroutines at once.
type Server struct {
	script Script
	models []string
	url    string

	http    http.Server
	closing context.Context
	close   context.CancelFunc
	served  chan struct{}
	active  sync.WaitGroup

	turn sync.Mutex // held while the script is asked

	mu       sync.Mutex
	requests []*Request
	arrived  chan struct{} // closed and replaced at every recorded request
}

// Start starts a server on a free port of the loopback interface. models are
// the names it lists to clients that ask; any model can be used whether it is
// listed or not. The caller must call [Server.Close].
func Start(script Script, models ...string) (*Server, error) {
	if script == nil {
		return nil, errors.New("modeltest: no script")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("modeltest: no port on loopback: %w", err)
	}
	if len(models) == 0 {
		models = defaultModels
	}
	s := &Server{
		script:  script,
		models:  slices.Clone(models),
		url:     "http://" + listener.Addr().String(),
		served:  make(chan struct{}),
		arrived: make(chan struct{}),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.http.Handler = http.HandlerFunc(s.serve)
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // returns when Close closes the listener
	}()
	return s, nil
}

// URL returns the server's address without a path, for example
// "http://127.0.0.1:40123".
func (s *Server) URL() string { return s.url }

// OpenAIURL returns the base URL of the OpenAI API: requests go to
// OpenAIURL()+"/responses" or OpenAIURL()+"/chat/completions".
func (s *Server) OpenAIURL() string { return s.url + "/v1" }

// OllamaURL returns the base URL of Ollama's OpenAI-compatible API, as Codex
// takes it in CODEX_OSS_BASE_URL. Ollama's own API is below [Server.URL].
func (s *Server) OllamaURL() string { return s.url + "/v1" }

// AnthropicURL returns the base URL of the Anthropic API, as Claude Code takes it
// in ANTHROPIC_BASE_URL: requests go to AnthropicURL()+"/v1/messages".
func (s *Server) AnthropicURL() string { return s.url }

// GeminiURL returns the base URL of the Gemini API, as Gemini CLI takes it in
// GOOGLE_GEMINI_BASE_URL: requests go to
// GeminiURL()+"/v1beta/models/MODEL:streamGenerateContent".
func (s *Server) GeminiURL() string { return s.url }

// Requests returns all requests so far, in the order they arrived.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ModelRequests returns the model requests so far.
func (s *Server) ModelRequests() []*Request {
	return slices.DeleteFunc(s.Requests(), func(r *Request) bool { return !r.IsModel() })
}

// Await waits for n model requests and returns them. It returns the error of
// ctx if ctx ends first, and an error if the server closes first.
func (s *Server) Await(ctx context.Context, n int) ([]*Request, error) {
	for {
		s.mu.Lock()
		arrived := s.arrived
		s.mu.Unlock()
		if got := s.ModelRequests(); len(got) >= n {
			return got[:n], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closing.Done():
			return nil, errors.New("modeltest: the server is closed")
		}
	}
}

// Close ends all requests, including held ones, and returns when all have
// ended. Recorded requests stay readable. Further calls do nothing.
func (s *Server) Close() {
	s.close()
	_ = s.http.Close()
	<-s.served
	s.active.Wait()
}

func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.active.Done()
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client went away
	}
	r := &Request{
		Method: hr.Method,
		Path:   hr.URL.Path,
		Query:  hr.URL.Query(),
		Header: hr.Header.Clone(),
		Body:   inflate(hr.Header.Get("Content-Encoding"), body),
	}
	d := dialectOf(r)
	if d == nil {
		s.record(r)
		s.answerAside(w, r)
		return
	}
	content, err := d.parse(r)
	if err != nil {
		s.record(r)
		d.refuse(w, HTTPError{Status: http.StatusBadRequest, Message: "modeltest: " + err.Error()})
		return
	}
	r.Provider, r.content = d.name(), content
	s.turn.Lock()
	s.record(r)
	reply := s.script(r)
	s.turn.Unlock()
	s.play(w, hr.Context(), d, r, reply)
}

// enter counts a request in, unless the server is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return false
	}
	s.active.Add(1)
	return true
}

func (s *Server) record(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// inflate returns the body without its transfer encoding, where it is one the
// standard library can undo.
func inflate(encoding string, body []byte) []byte {
	if encoding != "gzip" {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return body
	}
	return plain
}
