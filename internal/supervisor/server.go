package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// Bounds of what clients may ask for.
const (
	// maxCall is how long a call may be, in bytes: a prompt of 64 MiB, written as
	// JSON.
	maxCall = 6*(64<<20) + 1<<10
	// callTime is how long a client may take to say what it wants.
	callTime = 30 * time.Second
	// lastWords is how long clients may take to read the end of a session.
	lastWords = time.Second
)

// Options say what [Serve] serves.
type Options struct {
	Sessions *Sessions
	Entry    Entry // as Create returned it, or of a session to go on with; its workdir is absolute
	// Open starts the session. It calls notes.Started when it is settled what is
	// started, and no later than it returns.
	Open func(ctx context.Context, options session.Options, notes Notes) (Agent, error)
	// Ready is called when the session can be reached.
	Ready func()
	// Message is the first message, where there is one.
	Message string
	// Idle is how long the session may have nothing to do before it ends; 0 means
	// for ever.
	Idle time.Duration

	// Set by tests.
	logSize int64
	peer    func(net.Conn) bool
}

// Notes take what Open tells. The functions may be called from any goroutine.
type Notes struct {
	Started func(agent.Start)
	// Warn writes a warning down, of one line, as long as the session goes on.
	Warn func(string)
}

// An Agent is a session with what is told to others about it.
type Agent interface {
	Session() *session.Session
	// Send and Steer are those of the session. An error is why there is no turn.
	Send(m session.Message) (*session.Turn, error)
	Steer(ctx context.Context, m session.Message) (*session.Turn, error)
	// Stop ends the session, if it has not ended, and returns when nothing is left
	// of it and all that there was to tell is told.
	Stop(ctx context.Context, reason string)
}

// server is one supervisor.
type server struct {
	options Options
	talk    *conversation
	stopped chan string // why to end, at most once
	ended   chan struct{}
	clients sync.WaitGroup

	mu    sync.Mutex
	entry Entry
	conns map[net.Conn]struct{}
}

// Serve holds a session until it ends, until it is stopped, or until ctx ends. It
// returns when nothing of the session is left. The error says why there was none.
func Serve(ctx context.Context, o Options) error {
	if !filepath.IsAbs(o.Entry.Workdir) {
		return agent.Usagef("workdir %q is not absolute", o.Entry.Workdir)
	}
	folder := o.Sessions.folder(o.Entry.ID)
	lock, err := takeLock(o.Sessions.lockFile(o.Entry.ID))
	if err != nil {
		return err
	}
	defer lock.Release()
	if o.logSize == 0 {
		o.logSize = logSize
	}
	log, err := openLog(folder, o.logSize)
	if err != nil {
		return err
	}
	defer log.finish()
	if o.peer == nil {
		o.peer = isOwnPeer
	}
	s := &server{options: o, entry: o.Entry, stopped: make(chan string, 1), ended: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	s.talk = &conversation{log: log, idle: o.Idle, stop: s.stop, note: s.noteEvent}
	s.entry.PID, s.entry.Supervisor, s.entry.Stored = os.Getpid(), process.Self(), StateStarting
	s.entry.Ended, s.entry.Reason = time.Time{}, ""
	if err := o.Sessions.Save(s.entry); err != nil {
		return err
	}
	return s.serve(ctx)
}

// takeLock keeps a second supervisor away from a session.
func takeLock(name string) (*statefile.Lock, error) {
	l, err := statefile.TryLockPath(name)
	if errors.Is(err, statefile.ErrLocked) {
		return nil, agent.Usagef("the session is running already")
	}
	return l, err
}

// serve opens the session, serves it and ends it.
func (s *server) serve(ctx context.Context) error {
	held, err := s.options.Open(ctx, session.Options{Events: s.talk.event}, Notes{Started: s.noteStart, Warn: s.talk.warn})
	if err != nil {
		s.close(fmt.Sprintf("it could not be started: %v", err))
		return err
	}
	path := s.options.Sessions.socket(s.entry.ID)
	listener, err := listen(path)
	if err != nil {
		held.Stop(context.WithoutCancel(ctx), "it cannot be reached")
		s.close("it cannot be reached")
		return fmt.Errorf("listen for commands: %w", err)
	}
	live := held.Session()
	s.talk.opened(held)
	s.update(func(e *Entry) {
		e.Stored = StateLive
		if e.Ready.IsZero() {
			e.Ready = time.Now().UTC()
		}
		info := live.Info()
		e.takeInfo(info.SessionID, info.Model)
	})
	if s.options.Message != "" {
		if _, at, err := s.talk.send(s.options.Message); err == nil {
			at.close()
		}
	}
	go s.accept(listener)
	if s.options.Ready != nil {
		s.options.Ready()
	}

	reason := "the agent has ended"
	select {
	case <-live.Done():
		s.talk.finish() // by the end of the agent, not by a stop
	case reason = <-s.stopped:
	case <-ctx.Done():
		reason = context.Cause(ctx).Error()
	}
	held.Stop(context.WithoutCancel(ctx), reason)
	s.talk.finish()
	listener.Close()
	removeSocket(path, s.options.Sessions.folder(s.entry.ID))
	s.close(reason)
	s.dismiss()
	return nil
}

// close writes the end of the session down.
func (s *server) close(reason string) {
	s.talk.log.append(Record{Stopped: reason})
	s.talk.log.finish()
	s.update(func(e *Entry) { e.Stored, e.Ended, e.Reason = StateEnded, time.Now().UTC(), reason })
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
}

// stop ends the session, for the first of several reasons.
func (s *server) stop(reason string) {
	select {
	case s.stopped <- reason:
	default:
	}
}

// update changes the entry.
func (s *server) update(change func(*Entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.entry)
	if err := s.options.Sessions.Save(s.entry); err != nil {
		fmt.Fprintln(os.Stderr, "the state of the session cannot be written:", err) // to the log
	}
}

func (s *server) noteStart(start agent.Start) {
	s.update(func(e *Entry) { e.Runtime, e.Model, e.Workdir = start.Runtime, start.Model, start.Workdir })
}

func (s *server) noteEvent(e *agent.Event) {
	if e.Kind != agent.KindSessionStarted || e.Subagent != "" {
		return
	}
	s.mu.Lock()
	known := e.SessionID == s.entry.SessionID && (e.Model == "" || e.Model == s.entry.Model)
	s.mu.Unlock()
	if !known {
		s.update(func(entry *Entry) { entry.takeInfo(e.SessionID, e.Model) })
	}
}

func (e *Entry) takeInfo(sessionID, model string) {
	if sessionID != "" {
		e.SessionID = sessionID
	}
	if model != "" {
		e.Model = model
	}
}

func (s *server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
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
			s.answer(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
			conn.Close()
		}()
	}
}

// admit takes a connection, while there is a session.
func (s *server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return false
	default:
	}
	s.conns[conn] = struct{}{}
	s.clients.Add(1) // before the end, so before anybody waits
	return true
}

// dismiss waits until the clients have read what there is to say. Those that do
// not are left after a while.
func (s *server) dismiss() {
	impatience := time.AfterFunc(lastWords, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for conn := range s.conns {
			conn.Close()
		}
	})
	defer impatience.Stop()
	s.clients.Wait()
}

// client is the other side of a connection.
type client struct {
	conn net.Conn
	gone context.Context // ends when it has gone
}

// answer answers the call of one client.
func (s *server) answer(conn net.Conn) {
	if !s.options.peer(conn) {
		return
	}
	conn.SetReadDeadline(time.Now().Add(callTime))
	decoder := json.NewDecoder(io.LimitReader(conn, maxCall))
	var call Call
	if err := decoder.Decode(&call); err != nil {
		c := client{conn: conn}
		c.fail(agent.Usagef("not understood: %w", err))
		return
	}
	conn.SetReadDeadline(time.Time{})
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		io.Copy(io.Discard, conn) // until it goes away, or the connection is closed
		leave()
	}()
	c := client{conn, gone}
	if call.Version != ProtocolVersion {
		c.fail(agent.Usagef("this session speaks version %d of the protocol, not %d; use the bus-agent that started it", ProtocolVersion, call.Version))
		return
	}
	s.serveCall(&c, &call)
}

func (s *server) serveCall(c *client, call *Call) {
	switch call.Operation {
	case opShow:
		s.mu.Lock()
		entry := s.entry
		s.mu.Unlock()
		entry.Settings = nil
		status := s.talk.status(entry)
		s.options.Sessions.describe(status)
		c.say(Reply{Status: status, Last: true})
	case opSend:
		s.send(c, call)
	case opSteer:
		t, steered, err := s.talk.steer(c.gone, call.Text)
		if err != nil {
			c.fail(err)
			return
		}
		c.say(Reply{Turn: t.number, Steered: steered, Last: true})
	case opInterrupt:
		err := s.talk.live().Interrupt(c.gone)
		if errors.Is(err, session.ErrTooLate) {
			c.say(Reply{Idle: true, Last: true})
			return
		}
		c.done(err)
	case opAnswer:
		c.done(s.talk.answer(c.gone, call.Approval, call.Decision))
	case opWatch:
		s.watch(c, call)
	case opStop:
		s.stop(call.Reason)
		<-s.ended
		c.done(nil)
	default:
		c.fail(agent.Usagef("unknown operation %q", call.Operation))
	}
}

// send queues a message and, if the client waits, shows its turn.
func (s *server) send(c *client, call *Call) {
	t, at, err := s.talk.send(call.Text)
	if err != nil {
		c.fail(err)
		return
	}
	defer at.close()
	if !call.Wait {
		c.say(Reply{Turn: t.number, Last: true})
		return
	}
	if !c.say(Reply{Turn: t.number}) {
		return
	}
	for over := false; ; {
		over = t.over() // all that belongs to it is written then
		last, changed, _ := s.talk.log.state()
		if !c.pass(at, last, func(h head) bool { return h.Turn == t.number }) {
			return
		}
		if over {
			break
		}
		select {
		case <-changed:
		case <-t.turn.Done():
		case <-c.gone.Done():
			return
		}
	}
	result, err := t.turn.Wait(context.Background()) // is over
	c.say(Reply{Result: newResult(result, err), Last: true})
}

// watch shows what has happened and what happens.
func (s *server) watch(c *client, call *Call) {
	at, _, err := lastRecords(s.talk.log.folder, call.Last)
	if err != nil {
		c.fail(err)
		return
	}
	defer at.close()
	for {
		// What changes the state is written afterwards, so none is overlooked.
		_, changed, finished := s.talk.log.state()
		reached := call.Until != "" && s.talk.reached(call.Until)
		last, _, _ := s.talk.log.state()
		if !c.pass(at, last, nil) {
			return
		}
		if !call.Follow || reached || finished {
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

// pass shows the records up to last that wanted wants, and reports whether the
// client is there.
func (c *client) pass(at *cursor, last int64, wanted func(head) bool) bool {
	for {
		line, h, missed, err := at.read(last)
		if err != nil {
			c.fail(err)
			return false
		}
		if missed > 0 && !c.say(Reply{Missed: missed}) {
			return false
		}
		if line == nil {
			return true
		}
		if (wanted == nil || wanted(h)) && !c.say(Reply{Record: line}) {
			return false
		}
	}
}

// say writes a reply and reports whether the client is there.
func (c *client) say(r Reply) bool {
	r.Version = ProtocolVersion
	line, err := json.Marshal(r)
	if err != nil {
		return false
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err == nil
}

func (c *client) fail(err error) { c.say(Reply{Failure: failureOf(err), Last: true}) }

func (c *client) done(err error) { c.say(Reply{Failure: failureOf(err), Last: true}) }
