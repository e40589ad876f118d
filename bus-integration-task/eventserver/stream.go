package eventserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

const maxNames = 64 // of a stream

// query is what a stream delivers.
type query struct {
	names           []string
	workRef         string
	unicast         bool
	group, consumer string
	replay, follow  bool
	after           uint64 // position after which it begins
	control         bool
	settled         []string // see Server.broadcastOpen
}

// parseQuery reads the parameters of a stream.
func parseQuery(v url.Values) (query, error) {
	q := query{names: v["name"], settled: v["settled"], workRef: v.Get("work_ref"), group: v.Get("group"), consumer: v.Get("consumer")}
	set(&q.group, "default")
	set(&q.consumer, "default")
	slices.Sort(q.names)
	q.names = slices.Compact(q.names)
	switch v.Get("delivery") {
	case "", "broadcast":
	case "unicast", "work": // "work" is an older name
		q.unicast = true
	default:
		return q, badRequest("delivery: not broadcast or unicast", "")
	}
	for _, flag := range []struct {
		name    string
		to      *bool
		without bool
	}{{"replay", &q.replay, false}, {"follow", &q.follow, true}, {"control", &q.control, false}} {
		*flag.to = flag.without
		if text := v.Get(flag.name); text != "" {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return q, badRequest(flag.name+": not true or false", "")
			}
			*flag.to = value
		}
	}
	if id := v.Get("after_id"); id != "" {
		position, ok := events.ParseID(id)
		if !ok {
			return q, badRequest("after_id: not the ID of an event", "")
		}
		q.after, q.replay = position, true
	}
	return q, q.check()
}

func (q query) check() error {
	if len(q.names) == 0 || len(q.names) > maxNames {
		return badRequest("name: missing, or more than "+strconv.Itoa(maxNames), "")
	}
	for _, name := range q.names {
		if !events.ValidName(name) {
			return badRequest("name: not words of a-z, 0-9, - and _ joined by dots; wildcards are not allowed", "")
		}
		if q.workRef != "" && !isTaskName(name) {
			return badRequest("work_ref: only for names that begin with "+taskPrefix, "")
		}
	}
	if q.workRef != "" && !validRef(q.workRef) {
		return badRequest("work_ref: not 1 to 200 letters, digits or . _ - # : /", "")
	}
	if !validLabel(q.group) || !validLabel(q.consumer) {
		return badRequest("group or consumer: not 1 to 128 letters, digits or . _ - @ # : /", "")
	}
	if len(q.settled) > 0 && (q.unicast || !q.replay || q.after > 0 || len(q.settled) > maxNames) {
		return badRequest("settled: only for broadcast with replay and without after_id", "")
	}
	if q.unicast && (q.after > 0 || q.workRef != "") {
		return badRequest("after_id or work_ref: only for broadcast; a unicast group has one position in all events of a name", "")
	}
	return nil
}

// stream sends events until the client, the server, or the life of the token ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	who, err := s.authenticate(r)
	if err != nil {
		respondError(w, unauthorized(err))
		return
	}
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		respondProblem(w, err)
		return
	}
	for _, name := range q.names {
		if err := who.allow(name, true); err != nil {
			respondError(w, forbidden(err))
			return
		}
	}
	kind := streamKind{who.name, q.follow}
	if !s.enter(kind) {
		respondError(w, errManyOpen)
		return
	}
	defer s.leave(kind)

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.stopping, func() { cancel(errStopping) })()
	defer time.AfterFunc(who.expires.Sub(s.config.Now()), func() { cancel(errExpired) }).Stop()

	out := newLines(w, s.config.WriteTimeout, q.control)
	deliver := s.broadcast
	if q.unicast {
		deliver = s.unicast
	}
	if err := deliver(ctx, out, who, q); err != nil {
		s.endStream(out, w, ctx, err)
	}
}

// endStream reports why a stream ended before it was complete: as an answer if nothing
// was sent, on a control line if the client reads those, and else by cutting the
// connection, so that no client takes the stream for complete.
func (s *Server) endStream(out *lines, w http.ResponseWriter, ctx context.Context, err error) {
	var p problem
	if cause := context.Cause(ctx); !errors.As(cause, &p) && !errors.As(err, &p) {
		if cause == nil {
			s.config.Log(fmt.Sprintf("stream: %v", err))
		}
		p = errRead
	}
	if !out.begun {
		respondError(w, p)
		return
	}
	detail := p.detail()
	if !out.control || out.failed || out.send(events.Control{Kind: events.ControlEnded, Status: p.status, Error: &detail}) != nil {
		panic(http.ErrAbortHandler)
	}
}

func respondProblem(w http.ResponseWriter, err error) {
	var p problem
	if !errors.As(err, &p) {
		p = errRead
	}
	respondError(w, p)
}

// lines writes the lines of a stream. A client that does not read them fails the write
// after the timeout.
type lines struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	control bool // the client reads control lines
	begun   bool // the answer has begun
	dirty   bool // something has been written and not flushed
	failed  bool // a write has failed
}

func newLines(w http.ResponseWriter, timeout time.Duration, control bool) *lines {
	return &lines{w: w, rc: http.NewResponseController(w), timeout: timeout, control: control}
}

func (l *lines) open(afterID string, heartbeat time.Duration) error {
	l.w.Header().Set("Content-Type", "application/x-ndjson")
	l.w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold lines back
	l.w.WriteHeader(http.StatusOK)
	l.begun = true
	if err := l.send(events.Control{Kind: events.ControlOpened, AfterID: afterID, HeartbeatSeconds: max(1, int(heartbeat.Seconds()))}); err != nil {
		return err
	}
	return l.flush()
}

// event writes an event: its record with the ID put in front.
func (l *lines) event(position uint64, stored []byte) error {
	if len(stored) < 2 || stored[0] != '{' {
		return fmt.Errorf("event %s: its record in the store is damaged", events.FormatID(position))
	}
	return l.write([]byte(`{"id":"`+events.FormatID(position)+`",`), stored[1:], []byte("\n"))
}

// send writes and flushes a control line if the client reads those.
func (l *lines) send(c events.Control) error {
	if !l.control {
		return l.flush()
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := l.write(text, []byte("\n")); err != nil {
		return err
	}
	return l.flush()
}

func (l *lines) heartbeat() error {
	if err := l.write([]byte("\n")); err != nil {
		return err
	}
	return l.flush()
}

func (l *lines) write(parts ...[]byte) error {
	_ = l.rc.SetWriteDeadline(time.Now().Add(l.timeout)) // not all handlers of tests have one
	for _, part := range parts {
		if _, err := l.w.Write(part); err != nil {
			l.failed = true
			return err
		}
	}
	l.dirty = true
	return nil
}

func (l *lines) flush() error {
	l.dirty = false
	_ = l.rc.SetWriteDeadline(time.Now().Add(l.timeout))
	if err := l.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		l.failed = true
		return err
	}
	return nil
}
