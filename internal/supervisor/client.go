package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// dialTime is how long a supervisor may take to be reached.
const dialTime = 5 * time.Second

// A Watcher takes what comes in while a call is answered. An error of one of its
// functions ends the call. Nil functions are not called.
type Watcher struct {
	Record func(*Record) error
	Missed func(n int64) error
}

// errLost is the error of a call whose answer does not end.
var errLost = errors.New("the session's supervisor has ended without an answer; \"doctor\" finds what it left")

// call asks the supervisor of a session and returns the last line of its answer.
func (s *Sessions) call(ctx context.Context, e Entry, call Call, w Watcher) (reply Reply, err error) {
	if !e.Live() {
		return Reply{}, ended(e)
	}
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "unix", s.socket(e.ID))
	if err != nil {
		return Reply{}, &unreachable{e, err}
	}
	defer conn.Close()
	if !isOwnPeer(conn) {
		return Reply{}, fmt.Errorf("session %s cannot be reached: its socket is another user's", e.Handle())
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	call.Version = ProtocolVersion
	line, err := json.Marshal(call)
	if err != nil {
		return Reply{}, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", errLost, err)
	}
	replies := bufio.NewReaderSize(conn, 64<<10)
	var seen Reply
	for {
		line, err := readReply(replies)
		if err != nil {
			return Reply{}, err
		}
		var r Reply
		if err := json.Unmarshal(line, &r); err != nil {
			return Reply{}, fmt.Errorf("the session's supervisor is not understood: %w", err)
		}
		if err := w.take(&r); err != nil {
			return Reply{}, err
		}
		if r.Turn != 0 {
			seen.Turn = r.Turn
		}
		if !r.Last {
			continue
		}
		r.Turn = seen.Turn
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
			return nil, fmt.Errorf("the session's supervisor is not understood: it answers with a line of more than %d bytes", maxReply)
		case err == nil:
			return append(line, part...), nil
		case err != bufio.ErrBufferFull:
			return nil, errLost
		}
		line = append(line, part...)
	}
}

func (w Watcher) take(r *Reply) error {
	if r.Missed > 0 && w.Missed != nil {
		if err := w.Missed(r.Missed); err != nil {
			return err
		}
	}
	if r.Record == nil || w.Record == nil {
		return nil
	}
	var record Record
	if err := json.Unmarshal(r.Record, &record); err != nil {
		return fmt.Errorf("the session's supervisor is not understood: %w", err)
	}
	return w.Record(&record)
}

// ended is the error of a call to a session that has no supervisor.
func ended(e Entry) error {
	switch e.State() {
	case StateElsewhere:
		return e.notHere()
	case StateCrashed:
		return &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("session %s has crashed; \"session resume %s\" goes on with it", e.Handle(), e.Handle())}
	}
	why := e.Reason
	if why != "" {
		why = ": " + why
	}
	return &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("session %s has ended%s; \"session resume %s\" goes on with it", e.Handle(), why, e.Handle())}
}

// notHere is why nothing can be done about a session that is elsewhere.
func (e *Entry) notHere() error {
	return &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("session %s goes on elsewhere, on another machine or in another container", e.Handle())}
}

// Show returns what a session is doing. One that has no supervisor is described
// by its entry.
func (s *Sessions) Show(ctx context.Context, e Entry) (Status, error) {
	st := Status{Entry: e, State: e.State(), Questions: []Question{}}
	st.Settings = nil
	if st.State != StateLive {
		s.describe(&st)
		return st, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	reply, err := s.call(ctx, e, Call{Operation: opShow}, Watcher{})
	if err == nil && reply.Status != nil {
		return *reply.Status, nil
	}
	// It may have ended in the meantime.
	if now, loadErr := s.Load(e.ID); loadErr == nil {
		st.Entry, st.State = now, now.State()
		st.Settings = nil
	}
	if st.State == StateLive {
		st.State = StateSilent
	}
	s.describe(&st)
	return st, nil
}

// Send sends a message for a turn of its own and returns its number. With wait it
// returns when the turn is over, with its result, and passes on what happens.
func (s *Sessions) Send(ctx context.Context, e Entry, text string, wait bool, w Watcher) (int, *Result, error) {
	reply, err := s.call(ctx, e, Call{Operation: opSend, Text: text, Wait: wait}, w)
	return reply.Turn, reply.Result, err
}

// Steer adds a message to the running turn. It returns the number of the turn that
// has got it, and whether that was running before.
func (s *Sessions) Steer(ctx context.Context, e Entry, text string) (turn int, steered bool, err error) {
	reply, err := s.call(ctx, e, Call{Operation: opSteer, Text: text}, Watcher{})
	return reply.Turn, reply.Steered, err
}

// Interrupt ends the running turn or, where none is running, the first that waits, and
// reports whether there was one. It waits no longer than limit for the agent to
// answer.
func (s *Sessions) Interrupt(ctx context.Context, e Entry, limit time.Duration) (interrupted bool, err error) {
	unheeded := &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("session %s: the agent does not heed the interrupt; \"session stop %s\" ends it", e.Handle(), e.Handle())}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, unheeded)
	defer cancel()
	reply, err := s.call(ctx, e, Call{Operation: opInterrupt}, Watcher{})
	if err != nil && context.Cause(ctx) == error(unheeded) {
		err = unheeded
	}
	return err == nil && !reply.Idle, err
}

// Answer answers a question for permission; "" is the only one that is open.
func (s *Sessions) Answer(ctx context.Context, e Entry, approval string, d session.Decision) error {
	_, err := s.call(ctx, e, Call{Operation: opAnswer, Approval: approval, Decision: d}, Watcher{})
	return err
}

// Watch passes on the last records, all of them when last is negative. With
// follow it goes on until the session ends or is in the state until, "" for none.
// What has happened in a session without a supervisor is read from its files.
func (s *Sessions) Watch(ctx context.Context, e Entry, last int, follow bool, until session.State, w Watcher) error {
	if e.Live() {
		_, err := s.call(ctx, e, Call{Operation: opWatch, Last: last, Follow: follow, Until: until}, w)
		return err
	}
	at, end, err := lastRecords(s.folder(e.ID), last)
	if err != nil {
		return err
	}
	defer at.close()
	for ctx.Err() == nil {
		line, _, missed, err := at.read(end)
		if err == nil {
			err = w.take(&Reply{Record: line, Missed: missed})
		}
		if err != nil || line == nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// LogTail returns the last lines of what a supervisor has written to its log.
func (s *Sessions) LogTail(id string) string {
	const size = 4 << 10
	f, err := statefile.Open(s.logFile(id))
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		f.Seek(-size, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, size)) // as much as there is
	return string(text)
}
