package board

import (
	"bytes"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// policy lets the page load its own files and connect to its own server, and lets
// nothing make HTML of a text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// server answers the requests of pages.
type server struct {
	o     Options
	token string
	tasks *tasks
	mux   *http.ServeMux

	// Times, shortened by tests.
	coalesce time.Duration // between two updates of a page
	ping     time.Duration // between signs of life on a quiet stream
	retry    time.Duration // before the log is followed again, at first
}

func newServer(o Options, token string) *server {
	s := &server{o: o, token: token, tasks: newTasks(o.MaxEnded, o.MaxOpen), mux: http.NewServeMux(), coalesce: 200 * time.Millisecond, ping: 15 * time.Second, retry: time.Second}
	files, err := pageFiles.ReadDir("page")
	if err != nil {
		panic(err) // not embedded
	}
	for _, file := range files {
		s.mux.HandleFunc("GET /"+strings.Replace(file.Name(), "index.html", "{$}", 1), serveFile(file.Name()))
	}
	s.mux.HandleFunc("GET /events", s.stream)
	s.mux.HandleFunc("GET /task", s.task)
	s.mux.HandleFunc("POST /act", s.act)
	return s
}

// media are the types of the page's files.
var media = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

func serveFile(name string) http.HandlerFunc {
	content, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // not embedded
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media[path.Ext(name)])
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// ServeHTTP refuses requests that another site may have made and those without the
// token.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"Cache-Control":                "no-store",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	if !loopbackHost(r.Host) {
		// A name that an attacker has pointed at this address.
		refuse(w, http.StatusForbidden, "this host name is not of this machine; open the address that task board printed")
		return
	}
	token, name, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		refuse(w, http.StatusForbidden, "the token is missing or wrong; open the address that task board printed")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get("Origin") != "http://"+r.Host {
		refuse(w, http.StatusForbidden, "the request is not from the page of this board")
		return
	}
	if !below {
		http.Redirect(w, r, "/"+s.token+"/", http.StatusSeeOther)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+name, ""
	s.mux.ServeHTTP(w, inner)
}

// loopbackHost reports whether a Host header names this machine. Any port will do, since
// the board may be reached through a tunnel.
func loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}

// refuse answers with the reason as JSON, the form in which the page expects it.
func refuse(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]string{"error": why})
}

func answer(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text, code = []byte(`{"error":"cannot write the answer"}`), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}

// stream sends the state of all tasks and then what changes, as server-sent events.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	watcher := s.tasks.watch()
	if watcher == nil {
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are connected already; close some", maxStreams))
		return
	}
	defer s.tasks.unwatch(watcher)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(text []byte) error {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(text); err != nil {
			return err
		}
		return control.Flush()
	}
	if send([]byte("retry: 1000\n\n")) != nil {
		return
	}
	ping := time.NewTicker(s.ping)
	defer ping.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ping.C:
			if send([]byte(": ping\n\n")) != nil {
				return
			}
			continue
		case <-watcher.wake:
		}
		for more := true; more; {
			var text []byte
			var err error
			if text, more, err = s.tasks.next(watcher); err != nil {
				s.warn("cannot write an update: " + err.Error())
				return
			}
			if send(append(append([]byte("data: "), text...), "\n\n"...)) != nil {
				return
			}
		}
		select { // what changes meanwhile is one update
		case <-r.Context().Done():
			return
		case <-time.After(s.coalesce):
		}
	}
}

func (s *server) warn(text string) {
	if s.o.Warn != nil {
		s.o.Warn(text)
	}
}
