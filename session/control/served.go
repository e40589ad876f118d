package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// Bounds of what clients may ask for.
const (
	// maxCall is how long a call may be, in bytes: a prompt of 64 MiB, written as JSON,
	// and attachments, in base64.
	maxCall = 6*(64<<20) + agent.MaxAttachedBytes/3*4 + 64<<10
	// callTime is how long a client may take to send its call.
	callTime = 30 * time.Second
	// readTime is how long clients may take to read the end of a session.
	readTime = time.Second
)

// served is what other processes see of a session: its log and its socket, in its
// folder. A nil one does nothing.
type served struct {
	store    *Store
	entry    Entry // its folder does not change
	log      *eventLog
	lock     *statefile.Lock
	listener net.Listener
	peer     func(net.Conn) bool
	order    sync.Mutex    // so that a message is logged before what follows it
	ended    chan struct{} // closed when the log is whole
	clients  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// serve prepares the folder of a session that is about to start, whose entry
// exists.
func (m *Manager) serve(store *Store, e Entry) (*served, error) {
	if !m.Serve {
		return nil, nil
	}
	s := &served{store: store, entry: e, peer: isOwnPeer, ended: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	size := cmp.Or(m.logSize, logSize)
	if m.peer != nil {
		s.peer = m.peer
	}
	if err := os.MkdirAll(store.folder(e), 0o700); err != nil {
		return nil, err
	}
	if err := checkPrivate(store.dir); err != nil {
		return nil, err
	}
	var err error
	s.lock, err = statefile.TryLockPath(store.lockFile(e))
	if errors.Is(err, statefile.ErrLocked) {
		return nil, fmt.Errorf("%w: %s", ErrRunning, e.SessionID)
	}
	if err != nil {
		return nil, err
	}
	if err = store.keepBegun(e); err == nil {
		s.log, err = openLog(store.folder(e), size)
	}
	if err != nil {
		s.lock.Release()
		return nil, err
	}
	return s, nil
}

// record logs what happened.
func (s *served) record(r LogRecord) {
	if s == nil {
		return
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.log.append(r)
}

// recordOver logs the end of a turn and counts it in ends.
func (s *served) recordOver(ends *atomic.Int64, r LogRecord) {
	if s == nil {
		ends.Add(1)
		return
	}
	s.order.Lock()
	defer s.order.Unlock()
	ends.Add(1)
	s.log.append(r)
}

// awaitLogged waits until the ends of the turns that are over are logged, so that what
// the client reads next begins after them.
func (s *served) awaitLogged(h *held, c *client) {
	for {
		_, changed, finished := s.log.state()
		last, open := h.s.Turns()
		if finished || h.ends.Load() >= int64(last-open) {
			break
		}
		select {
		case <-changed:
		case <-c.gone.Done():
			return
		}
	}
	s.order.Lock() // the last one is counted just before it is logged
	defer s.order.Unlock()
}

// send sends a message and logs it.
func (s *served) send(to *session.Session, m session.Message) *session.Turn {
	if s == nil {
		return to.Send(m)
	}
	s.order.Lock()
	defer s.order.Unlock()
	t := to.Send(m)
	s.log.append(LogRecord{Turn: t.Number(), Message: m.Text, Attachments: agent.AttachmentInfos(m.Attachments)})
	return t
}

// listen begins to serve h.
func (s *served) listen(h *held) error {
	if s == nil {
		return nil
	}
	var err error
	if s.listener, err = listen(s.store.socket(s.entry)); err == nil {
		go s.accept(h)
	}
	return err
}

// fail ends what was prepared for a session that did not start.
func (s *served) fail(err error) {
	if s != nil {
		s.end(fmt.Sprintf("it could not be started: %v", err))
		s.dismiss()
	}
}

// end logs the end of the session, for a reason, and admits no more clients.
func (s *served) end(reason string) {
	if s == nil {
		return
	}
	s.record(LogRecord{Stopped: reason})
	s.log.finish()
	if s.listener != nil {
		s.listener.Close()
		s.store.removeSocket(s.entry)
	}
}

// dismiss waits until the clients have read their answers. Those that do
// not are left after a while.
func (s *served) dismiss() {
	if s == nil {
		return
	}
	s.mu.Lock()
	close(s.ended)
	s.mu.Unlock()
	impatience := time.AfterFunc(readTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for conn := range s.conns {
			conn.Close()
		}
	})
	defer impatience.Stop()
	s.clients.Wait()
	s.lock.Release()
}

func (s *served) accept(h *held) {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, perhaps
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !s.admit(conn) {
			conn.Close()
			continue
		}
		go func() {
			defer s.clients.Done()
			s.answer(h, conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
			conn.Close()
		}()
	}
}

// admit takes a connection, while there is a session.
func (s *served) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return false
	default:
	}
	s.conns[conn] = struct{}{}
	s.clients.Add(1) // before the end, so before anything waits
	return true
}

// client is the other side of a connection.
type client struct {
	conn net.Conn
	gone context.Context // ends when it has gone
}

// answer answers the call of one client.
func (s *served) answer(h *held, conn net.Conn) {
	if !s.peer(conn) {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(callTime))
	decoder := json.NewDecoder(io.LimitReader(conn, maxCall))
	var what call
	if err := decoder.Decode(&what); err != nil {
		c := client{conn: conn}
		c.done(agent.Usagef("not understood: %w", err))
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		_, _ = io.Copy(io.Discard, conn) // until it goes away, or the connection is closed
		leave()
	}()
	c := client{conn, gone}
	if what.Version != protocolVersion {
		c.done(agent.Usagef("this session speaks version %d of the protocol, not %d; use the bus-agent that started it", protocolVersion, what.Version))
		return
	}
	s.serveCall(h, &c, &what)
}

func (s *served) serveCall(h *held, c *client, what *call) {
	switch what.Operation {
	case opShow:
		c.say(reply{Status: h.status(), Last: true})
	case opSend:
		s.answerSend(h, c, what)
	case opSteer:
		t, steered, err := h.steer(c.gone, what.message())
		if err != nil {
			c.done(err)
			return
		}
		c.say(reply{Turn: t.Number(), Steered: steered, Last: true})
	case opInterrupt:
		err := h.s.Interrupt(c.gone)
		if errors.Is(err, session.ErrTooLate) {
			c.say(reply{Idle: true, Last: true})
			return
		}
		if err == nil {
			s.awaitLogged(h, c)
		}
		c.done(err)
	case opAnswer:
		if len(what.Answers) > 0 {
			c.done(h.answerQuestions(c.gone, what.Approval, what.Answers))
			return
		}
		c.done(h.answer(c.gone, what.Approval, what.Decision))
	case opWatch:
		s.watch(h, c, what)
	case opStop:
		go h.stop(context.Background(), what.Reason)
		<-s.ended
		c.done(nil)
	default:
		c.done(agent.Usagef("unknown operation %q", what.Operation))
	}
}

// answerSend queues a message and, if the client waits, shows its turn.
func (s *served) answerSend(h *held, c *client, what *call) {
	at, err := s.log.end()
	if err != nil {
		c.done(err)
		return
	}
	defer at.close()
	t, err := h.send(what.message())
	switch {
	case err != nil:
		c.done(err)
	case what.Wait == "":
		c.say(reply{Turn: t.Number(), Last: true})
	case !c.say(reply{Turn: t.Number()}):
	case what.Wait == untilDelivered:
		c.done(delivered(c.gone, t))
	case s.show(c, at, t):
		result, err := t.Wait(context.Background()) // is over
		c.say(reply{Result: newResult(result, err), Last: true})
	}
}

// show shows a turn until it is over, and reports whether the client is connected.
func (s *served) show(c *client, at *cursor, t *session.Turn) bool {
	for over := false; ; {
		select {
		case <-t.Done():
			over = true // all that belongs to it is written
		default:
		}
		last, changed, _ := s.log.state()
		if !c.pass(at, last, func(h head) bool { return h.Turn == t.Number() }) {
			return false
		}
		if over {
			return true
		}
		select {
		case <-changed:
		case <-t.Done():
		case <-c.gone.Done():
			return false
		}
	}
}

// watch shows what has happened and what happens.
func (s *served) watch(h *held, c *client, what *call) {
	at, _, err := lastRecords(s.log.folder, what.Last)
	if err != nil {
		c.done(err)
		return
	}
	defer at.close()
	for {
		// What changes the state is written afterwards, so none is overlooked.
		_, changed, finished := s.log.state()
		reached := what.Until != "" && h.reached(what.Until)
		last, _, _ := s.log.state()
		if !c.pass(at, last, nil) {
			return
		}
		if !what.Follow || reached || finished {
			c.done(nil)
			return
		}
		select {
		case <-changed:
		case <-c.gone.Done():
			return
		}
	}
}

// pass shows the records up to last that wanted selects, and reports whether the
// client is connected.
func (c *client) pass(at *cursor, last int64, wanted func(head) bool) bool {
	for {
		line, h, missed, err := at.read(last)
		if err != nil {
			c.done(err)
			return false
		}
		if missed > 0 && !c.say(reply{Missed: missed}) {
			return false
		}
		if line == nil {
			return true
		}
		if (wanted == nil || wanted(h)) && !c.say(reply{Record: line}) {
			return false
		}
	}
}

// say writes a reply and reports whether the client is connected.
func (c *client) say(r reply) bool {
	r.Version = protocolVersion
	line, err := json.Marshal(r)
	if err != nil {
		return false
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err == nil
}

func (c *client) done(err error) { c.say(reply{Failure: failureOf(err), Last: true}) }
