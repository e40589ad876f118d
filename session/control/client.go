package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// dialTime is how long it may take to reach the process that holds a session.
const dialTime = 5 * time.Second

// A Client reaches the sessions of a state folder that are served, whichever process
// holds them: see [Manager.Serve] and [Client.Start]. Its methods may be called
// concurrently. The zero value reaches the sessions of the user.
type Client struct {
	// Store is where the sessions are kept. Nil means the user's state folder.
	Store *Store
	// Host is the program that holds the sessions that the client starts. Only Start
	// and Resume need it.
	Host Program
	// Report receives what a session that is being started reports, from one
	// goroutine. It may be nil.
	Report func(Report)

	stopLimit time.Duration // set by tests; 0 means the constant
	anyPeer   bool          // set by tests, which answer for the process that holds a session
}

// A Watcher receives the records of a session. An error from one of its functions
// ends only the call. Nil functions are not called.
type Watcher struct {
	// Record receives the records in order.
	Record func(*LogRecord) error
	// Missed receives the number of records that were removed before they were
	// read.
	Missed func(n int64) error
}

// errLost is the error of a call whose answer does not end.
var errLost = errors.New("the process that holds the session has ended without an answer; \"doctor\" finds what it left")

// errVersion is in the error of a call to a process that speaks another version of the
// protocol.
var errVersion = errors.New("another version of the protocol")

// errForeign is in the error of a call to a socket at which another process listens
// than the one that holds the session: an agent can replace the file.
var errForeign = errors.New("another process listens at its socket")

func (c *Client) store() (*Store, error) {
	if c.Store != nil {
		return c.Store, nil
	}
	return userStore(os.Environ())
}

// Find returns the session that label names: see [Store.Find].
func (c *Client) Find(label string) (Entry, error) {
	store, err := c.store()
	if err != nil {
		return Entry{}, err
	}
	return store.Find(label)
}

// List returns the sessions that filter selects: see [Store.List].
func (c *Client) List(filter Filter) ([]Entry, []Problem, error) {
	store, err := c.store()
	if err != nil {
		return nil, nil, err
	}
	return store.List(filter)
}

// call calls the process that holds a session and returns the last line of its
// answer.
func (c *Client) call(ctx context.Context, e Entry, what call, w Watcher) (last reply, err error) {
	store, err := c.store()
	if err != nil {
		return reply{}, err
	}
	if store.settle(&e); !e.Served() {
		return reply{}, notServed(e)
	}
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "unix", store.socket(e))
	if err != nil {
		return reply{}, &unreachable{e, err}
	}
	defer conn.Close()
	p, ok := peerOf(conn)
	switch {
	case !ok || p.uid != os.Geteuid():
		return reply{}, fmt.Errorf("session %s cannot be reached: its socket is another user's", e.Label())
	case p.pid != 0 && p.pid != e.OwnerPID && !c.anyPeer && (e.State != session.StateDamaged || e.OwnerPID != 0):
		return reply{}, &unreachable{e, fmt.Errorf("%w: process %d", errForeign, p.pid)}
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	what.Version = protocolVersion
	line, err := json.Marshal(what)
	if err != nil {
		return reply{}, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return reply{}, fmt.Errorf("%w: %w", errLost, err)
	}
	turn := 0
	for replies := bufio.NewReaderSize(conn, 64<<10); ; {
		line, err := readReply(replies)
		if err != nil {
			return reply{}, err
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			return reply{}, fmt.Errorf("the process that holds the session is not understood: %w", err)
		}
		if err := w.take(&r); err != nil {
			return reply{}, err
		}
		if r.Turn != 0 {
			turn = r.Turn
		}
		if !r.Last {
			continue
		}
		r.Turn, r.peer = turn, p.pid
		if r.Version != protocolVersion && r.Failure != nil {
			return r, &because{fmt.Sprintf("session %s: %v", e.Label(), r.Failure.err()), errVersion}
		}
		return r, r.Failure.err()
	}
}

// maxReply bounds a line of an answer, in bytes: one that holds a record and little
// more.
const maxReply = maxRecord + 1<<20

// readReply reads a line of an answer. Anything can be in the place of the socket.
func readReply(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		switch {
		case len(line)+len(part) > maxReply:
			return nil, fmt.Errorf("the process that holds the session is not understood: it answers with a line of more than %d bytes", maxReply)
		case err == nil:
			return append(line, part...), nil
		case err != bufio.ErrBufferFull:
			return nil, errLost
		}
		line = append(line, part...)
	}
}

func (w Watcher) take(r *reply) error {
	if r.Missed > 0 && w.Missed != nil {
		if err := w.Missed(r.Missed); err != nil {
			return err
		}
	}
	if r.Record == nil || w.Record == nil {
		return nil
	}
	var record LogRecord
	if err := json.Unmarshal(r.Record, &record); err != nil {
		return fmt.Errorf("the process that holds the session is not understood: %w", err)
	}
	return w.Record(&record)
}

// notServed is the error of a call to a session that cannot be called.
func notServed(e Entry) error {
	reason := func(err error, format string, args ...any) error {
		text := fmt.Sprintf("session %s %s", e.Label(), fmt.Sprintf(format, args...))
		return &agent.Error{Kind: agent.ErrAgent, Err: &because{text, err}}
	}
	const resume = "; \"session resume %s\" continues it"
	switch {
	case e.State == session.StateCrashed && !e.resumable():
		return reason(ErrNotRunning, "has crashed before its first turn; it cannot be resumed")
	case e.State == session.StateElsewhere:
		return reason(ErrElsewhere, "is running elsewhere, on another machine or in another container")
	case e.State == session.StateCrashed:
		return reason(ErrNotRunning, "has crashed"+resume, e.Label())
	case !e.State.Ended():
		return reason(ErrElsewhere, "is held by another process, which does not serve it")
	case e.Reason != "":
		return reason(ErrNotRunning, "has ended: %s"+resume, e.Reason, e.Label())
	}
	return reason(ErrNotRunning, "has ended"+resume, e.Label())
}

// Show returns the status of a session. For a session that is not served, it is
// made from the entry.
func (c *Client) Show(ctx context.Context, e Entry) (Status, error) {
	store, err := c.store()
	if err != nil {
		return Status{}, err
	}
	if store.settle(&e); e.Served() {
		ctx, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		last, err := c.call(ctx, e, call{Operation: opShow}, Watcher{})
		if err == nil && last.Status != nil {
			if e.State == session.StateDamaged {
				last.Status.State = e.State
			}
			return *last.Status, nil
		}
		// It may have ended in the meantime.
		if now, err := store.Get(e.SessionID); err == nil {
			e = now
		}
		if e.Served() && e.State != session.StateStarting && e.State != session.StateDamaged {
			e.State = session.StateUnreachable
		}
	}
	running, _ := e.Running() // what is unknown does not count as running
	return Status{Entry: e, Running: running, Approvals: []session.Approval{}, Questions: []session.QuestionRequest{}}, nil
}

// Send queues a message for a separate turn and returns the number of the turn.
func (c *Client) Send(ctx context.Context, e Entry, m Message) (turn int, err error) {
	last, err := c.call(ctx, e, sendCall(m, ""), Watcher{})
	return last.Turn, err
}

// Ask sends a message, passes the records of its turn to w, and waits for the
// turn to end. It returns what [session.Turn.Wait] does. When ctx ends, the
// turn continues.
func (c *Client) Ask(ctx context.Context, e Entry, m Message, w Watcher) (agent.Result, error) {
	last, err := c.call(ctx, e, sendCall(m, untilOver), w)
	if err != nil {
		return agent.Result{}, err
	}
	if last.Result == nil {
		return agent.Result{}, errors.New("the process that holds the session gave no result")
	}
	return last.Result.outcome()
}

func sendCall(m Message, wait string) call {
	return call{Operation: opSend, Text: m.Text, Attachments: m.Attachments, Delivery: m.Delivery, Timeout: m.Timeout, TurnTimeout: m.TurnTimeout, Wait: wait}
}

// Steer adds a message to the running turn. It returns the number of the turn that
// received it, and whether that turn was already running.
func (c *Client) Steer(ctx context.Context, e Entry, m Message) (turn int, steered bool, err error) {
	what := sendCall(m, "")
	what.Operation = opSteer
	last, err := c.call(ctx, e, what, Watcher{})
	return last.Turn, last.Steered, err
}

// Interrupt ends the running turn or, if none is running, the first waiting one, and
// reports whether there was one. It waits for at most limit until the agent answers.
func (c *Client) Interrupt(ctx context.Context, e Entry, limit time.Duration) (interrupted bool, err error) {
	unanswered := &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("session %s: the agent did not respond to the interrupt; \"session stop %s\" ends it", e.Label(), e.Label())}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, unanswered)
	defer cancel()
	last, err := c.call(ctx, e, call{Operation: opInterrupt}, Watcher{})
	if err != nil && context.Cause(ctx) == error(unanswered) {
		err = unanswered
	}
	return err == nil && !last.Idle, err
}

// AnswerQuestions answers the questions with the given ID, with an answer for each in
// order; "" means the only open ones. See [session.Session.AnswerQuestions].
func (c *Client) AnswerQuestions(ctx context.Context, e Entry, id string, answers [][]string) error {
	if len(answers) == 0 {
		return agent.Usagef("no answers are given")
	}
	_, err := c.call(ctx, e, call{Operation: opAnswer, Approval: id, Answers: answers}, Watcher{})
	return err
}

// Answer answers the approval request with the given ID, or declines questions; ""
// means the only open request.
func (c *Client) Answer(ctx context.Context, e Entry, approvalID string, d session.Decision) error {
	_, err := c.call(ctx, e, call{Operation: opAnswer, Approval: approvalID, Decision: d}, Watcher{})
	return err
}

// WatchOptions say which records of a session's log to watch.
type WatchOptions struct {
	// Last is how many of the newest records to begin with. A negative number means
	// all that are stored.
	Last int
	// Follow continues with later records until the session ends.
	Follow bool
	// Until is like Follow, but ends when the session is in this state. A session that
	// is ready, with no message queued, has also reached session.StateWaiting: it will
	// not get there by itself. Empty means no state.
	Until session.State
}

// Watch passes the records of a session's log to w. It works for sessions that have
// ended too.
func (c *Client) Watch(ctx context.Context, e Entry, opts WatchOptions, w Watcher) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	if store.settle(&e); e.Served() {
		_, err := c.call(ctx, e, call{Operation: opWatch, Last: opts.Last, Follow: opts.Follow || opts.Until != "", Until: opts.Until}, w)
		return err
	}
	if e.Folder == "" {
		return notServed(e)
	}
	at, end, err := lastRecords(store.folder(e), opts.Last)
	if err != nil {
		return err
	}
	defer at.close()
	for ctx.Err() == nil {
		line, _, missed, err := at.read(end)
		if err == nil {
			err = w.take(&reply{Record: line, Missed: missed})
		}
		if err != nil || line == nil {
			return err
		}
	}
	return context.Cause(ctx)
}
