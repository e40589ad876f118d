package events

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Delivery says who receives an event.
type Delivery string

const (
	// Broadcast delivers each event to every stream, in the order of the log.
	Broadcast Delivery = "broadcast"
	// Unicast delivers each event to one stream of each group. An event whose delivery
	// was cut off is delivered again, so an event can be delivered twice, and events of a
	// group are in no particular order.
	Unicast Delivery = "unicast"
)

// Query selects the events of a stream.
type Query struct {
	// Names are the names of the events; at least one. With Broadcast, the order of the
	// log is kept across names.
	Names []string
	// WorkRef narrows the stream to one task.
	WorkRef string
	// Delivery is Broadcast if empty.
	Delivery Delivery
	// Group and Consumer name the consumer of a Unicast stream; "default" if empty.
	Group, Consumer string
	// Replay begins with the oldest event of the log. With Unicast it decides where a new
	// group begins; a group that exists continues where it is.
	Replay bool
	// AfterID begins after the event with this ID. It implies Replay, and is only for
	// Broadcast.
	AfterID string
	// Settled leaves out tasks that need nothing more: those whose latest event has one of
	// these names and was appended on a condition. It is only for Broadcast with Replay,
	// and narrows what the log has when the stream begins, of which the order is then only
	// that of each task. After a connection that was lost before CaughtUp, events come
	// again. Servers that do not know it send everything.
	Settled []string
	// Once ends the stream after the events that are in the log, instead of following it.
	Once bool
	// CaughtUp, if set, is called when all events that were in the log have been
	// delivered, and again after each reconnect. Only the server of this module reports
	// it; with others it is never called.
	CaughtUp func()
	// Disconnected, if set, is called before each wait for a reconnect.
	Disconnected func(err error, wait time.Duration)
}

// Stream calls handle with each event of a query, one at a time. It returns nil at the
// end of a query with Once, and otherwise only with an error: that of handle, that of the
// context, or one of the kinds of this package. It reconnects after [ErrUnavailable] as
// c.Retry says, and fails at once on all others. When its token expires, it asks at once for
// another, and fails with [ErrUnauthorized] if there is none.
//
// A broadcast stream continues after the last event for which handle was called: none is
// lost or repeated. Events of a unicast stream are acknowledged by the server once they
// have been written to the connection.
func (c *Client) Stream(ctx context.Context, q Query, handle func(Event) error) error {
	if err := q.check(); err != nil {
		return err
	}
	s := &subscription{client: c, query: q, handle: handle, after: q.AfterID, backoff: c.Retry.backoff()}
	for renewed := false; ; {
		done, err := s.follow(ctx)
		if done {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, ErrUnavailable) && !s.expired || c.Retry.Disabled {
			return err
		}
		wait := time.Duration(0) // after an expired token the next one, or an error, is due at once
		if !s.expired || renewed {
			wait = s.backoff.next()
		}
		renewed = s.expired
		if q.Disconnected != nil {
			q.Disconnected(err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (q Query) check() error {
	if len(q.Names) == 0 {
		return invalid("events query: it has no event name")
	}
	for _, name := range q.Names {
		if !ValidName(name) {
			return invalid("event name %q: not words of a-z, 0-9, - and _ joined by dots; wildcards are not allowed", oneLine(name))
		}
	}
	if len(q.Settled) > 0 && (q.Delivery == Unicast || !q.Replay || q.AfterID != "") {
		return invalid("events query: settled is only for broadcast with replay and without after_id")
	}
	if q.Delivery == Unicast && q.AfterID != "" {
		return invalid("events query: after_id is only for broadcast; a unicast group keeps its own position")
	}
	return nil
}

// subscription is a running Stream.
type subscription struct {
	client  *Client
	query   Query
	handle  func(Event) error
	after   string // ID after which the next connection begins
	backoff *backoff
	silence time.Duration // longest time that the server is silent; 0 if unknown
	expired bool          // the last connection ended since its token expired
	partial bool          // the server sends the log without settled tasks, in no order
}

// follow reads one connection to its end. It reports done when the stream must not be
// continued, with nil for a complete one.
func (s *subscription) follow(ctx context.Context) (done bool, err error) {
	s.expired, s.partial = false, false
	connection, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatch(s.client.timeout(), cancel)
	defer watch.stop()

	response, err := s.client.send(connection, http.MethodGet, "/stream", s.values(), nil)
	if err != nil {
		return false, silent(connection, err)
	}
	defer response.Body.Close()
	watch.set(s.silence)
	lines := newLineReader(watch.reader(response.Body))
	controlled := false
	for {
		event, control, err := lines.next()
		switch {
		case err == io.EOF && s.query.Once && !controlled:
			return true, nil
		case err == io.EOF:
			return false, unavailable("events server: it closed the stream", nil)
		case errors.Is(err, ErrInvalid):
			return true, err
		case err != nil:
			return false, silent(connection, unavailable("events server: the stream was cut off", err))
		case control != nil:
			controlled = true
			if done, err := s.control(control, watch); done || err != nil {
				return done, err
			}
		default:
			s.backoff.reset()
			watch.pause() // the time of the caller does not count
			if err := s.deliver(*event); err != nil {
				return true, err
			}
			watch.resume()
		}
	}
}

func (s *subscription) control(c *Control, watch *watch) (done bool, err error) {
	switch c.Kind {
	case ControlOpened:
		s.backoff.reset()
		s.partial = len(s.query.Settled) > 0 && s.after == ""
		if s.query.Delivery != Unicast && s.after == "" && !s.partial {
			s.after = c.AfterID
		}
		if c.HeartbeatSeconds > 0 && c.HeartbeatSeconds < 3600 {
			s.silence = 3 * time.Duration(c.HeartbeatSeconds) * time.Second
			watch.set(s.silence)
		}
	case ControlCaughtUp:
		if s.partial {
			s.partial, s.after = false, c.AfterID
		}
		if s.query.CaughtUp != nil {
			watch.pause()
			s.query.CaughtUp()
			watch.resume()
		}
	case ControlEnded:
		if c.Error == nil {
			return s.query.Once, unavailableUnless(s.query.Once)
		}
		return s.ended(c)
	}
	return false, nil
}

// ended handles the end of a stream by the server. After that of an expired token the
// next connection asks for another, and fails if there is none.
func (s *subscription) ended(c *Control) (done bool, err error) {
	err = failed(c.Status, *c.Error)
	s.expired = errors.Is(err, ErrUnauthorized)
	return false, err
}

func unavailableUnless(complete bool) error {
	if complete {
		return nil
	}
	return unavailable("events server: it ended the stream", nil)
}

// deliver calls the function of the caller, and remembers the position.
func (s *subscription) deliver(e Event) error {
	if s.query.Delivery == Unicast || s.partial {
		return s.handle(e)
	}
	if got, ok := ParseID(e.ID); ok {
		if last, ok := ParseID(s.after); ok && got <= last {
			return nil
		}
	}
	if err := s.handle(e); err != nil {
		return err
	}
	if e.ID != "" {
		s.after = e.ID
	}
	return nil
}

func (s *subscription) values() url.Values {
	q := s.query
	v := url.Values{"name": q.Names, "control": {"true"}}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("delivery", string(q.Delivery))
	set("group", q.Group)
	set("consumer", q.Consumer)
	set("work_ref", q.WorkRef)
	if q.Delivery != Unicast {
		set("after_id", s.after)
	}
	if s.after == "" {
		v["settled"] = q.Settled
	}
	if q.Replay || s.after != "" {
		v.Set("replay", "true")
	}
	if q.Once {
		v.Set("follow", "false")
	}
	return v
}

var errSilent = errors.New("no answer, line or heartbeat in time")

// silent replaces the error of a connection that the watch has ended.
func silent(connection context.Context, err error) error {
	if context.Cause(connection) == errSilent {
		return unavailable("events server: it fell silent", errSilent)
	}
	return err
}

// watch cancels a connection on which nothing arrives. It is off while its limit is 0.
type watch struct {
	limit time.Duration
	timer *time.Timer
	end   context.CancelCauseFunc
}

func newWatch(limit time.Duration, end context.CancelCauseFunc) *watch {
	w := &watch{end: end}
	w.set(limit)
	return w
}

func (w *watch) set(limit time.Duration) {
	w.pause()
	w.limit = limit
	w.resume()
}

func (w *watch) resume() {
	switch {
	case w.limit == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.limit, func() { w.end(errSilent) })
	default:
		w.timer.Reset(w.limit)
	}
}

func (w *watch) pause() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) stop() { w.pause() }

func (w *watch) reader(from io.Reader) io.Reader { return &watchedReader{from, w} }

type watchedReader struct {
	from  io.Reader
	watch *watch
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.watch.resume()
	}
	return n, err
}
