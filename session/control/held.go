package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// held is a session that a Manager holds. One goroutine, record, keeps its entry,
// writes the end of turns to the log and notifies the hooks, in the order in which
// things happen.
type held struct {
	manager  *Manager
	store    *Store
	starting *starting
	hooks    *Hooks  // of its settings
	served   *served // nil when only this process reaches it
	s        *session.Session
	wake     chan struct{}
	over     chan struct{} // closed when the entry shows that the session has ended
	waiting  atomic.Bool   // the entry shows that it waits for an answer
	warned   bool          // of the entry, by record
	happens  happenings
	ends     atomic.Int64   // turns whose end is written
	turn     atomic.Int64   // that is running, as far as it is reported; 0 for none
	sending  sync.WaitGroup // messages that are on their way to the session

	saved Entry // what was written last, by record

	// mu is taken by callbacks of the session, so no method of s is called under it.
	mu      sync.Mutex
	entry   Entry
	closed  bool // takes no more messages
	stopped bool // by Stop
	reason  string
}

func newHeld(m *Manager, store *Store, p *starting) *held {
	h := &held{manager: m, store: store, starting: p, entry: p.entry, wake: make(chan struct{}, 1), over: make(chan struct{})}
	p.runner.Warn = func(line string) {
		if !slices.Contains(p.warnings, line) { // it was shown when the runtime was selected
			m.runnerWarn(line)
			h.served.record(LogRecord{Turn: int(h.turn.Load()), Warning: line})
		}
	}
	return h
}

// warn reports something about the session that did not end it.
func (h *held) warn(line string) {
	h.manager.warn(line)
	h.served.record(LogRecord{Warning: line})
}

// happenings are the deliveries and ends of turns that were not reported yet, in order.
// The session adds to them while it holds its lock.
type happenings struct {
	mu   sync.Mutex
	list []happening
}

// happening is a message that was delivered, or a turn that is over.
type happening struct {
	text string
	over *session.Turn // nil for a message
}

func (q *happenings) add(h happening) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, h)
}

func (q *happenings) take() []happening {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// listen returns o with callbacks that record what changes the entry, is logged, or is
// reported to hooks.
func (h *held) listen(o session.Options) session.Options {
	started, events, sending, delivered, over, answered := o.Started, o.Events, o.Sending, o.Delivered, o.Over, o.Answered
	o.Started = func(start agent.Start) {
		h.entry.RunID = cmp.Or(start.RunID, h.entry.RunID)
		if started != nil {
			started(start)
		}
	}
	o.Events = func(e *agent.Event) (err error) {
		if events != nil {
			err = events(e)
		}
		if e.Turn > 0 {
			h.turn.Store(int64(e.Turn))
		}
		if e.Kind != agent.KindHeartbeat {
			h.served.record(LogRecord{Turn: e.Turn, Event: e})
		}
		if e.Kind == agent.KindApproval || e.Kind == agent.KindQuestion || e.Kind == agent.KindSessionStarted || h.waiting.Load() {
			h.signal()
		}
		return err
	}
	o.Answered = func(q session.QuestionRequest, answers [][]string) {
		if answered != nil {
			answered(q, answers)
		}
		h.served.record(LogRecord{Turn: int(h.turn.Load()), Answered: &Answered{Approval: q.ID, Answers: q.Shown(answers)}})
	}
	o.Sending = func(m session.Message) {
		if sending != nil {
			sending(m)
		}
		h.mu.Lock()
		h.entry.Fresh = false
		h.mu.Unlock()
		h.signal()
	}
	o.Delivered = func(t *session.Turn, m session.Message) {
		if delivered != nil {
			delivered(t, m)
		}
		h.turn.Store(int64(t.Number()))
		h.happens.add(happening{text: m.Text})
		h.signal()
	}
	o.Over = func(t *session.Turn) {
		if over != nil {
			over(t)
		}
		h.turn.CompareAndSwap(int64(t.Number()), 0)
		h.happens.add(happening{over: t})
		h.signal()
	}
	return o
}

func (h *held) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// opened notes that the session can take messages.
func (h *held) opened(ctx context.Context, s *session.Session, resumed bool) error {
	h.s = s
	e := &h.entry
	e.State, e.Ready, e.PID, e.TmuxSocket = session.StateReady, now(), s.PID(), s.Socket()
	if identity, err := process.Identify(e.PID); err == nil {
		e.Process = identity
	} // else it has ended already
	e.learn(s.Info())
	if err := h.served.listen(h); err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	if err := h.store.save(ctx, *e); err != nil {
		return err
	}
	data := map[string]string{"message": "started", "native_session_id": e.NativeID}
	if resumed {
		data["message"] = "resumed"
	}
	h.emit(SessionStart, data)
	return nil
}

// maxReported bounds what a runtime reports, in bytes: an entry is limited.
const maxReported = 1 << 10

// learn notes what the runtime has reported. A part of an ID could not be resumed.
func (e *Entry) learn(info engine.Info) {
	if info.SessionID != "" && len(info.SessionID) <= maxReported && (info.SessionID != e.NativeID || e.Created.IsZero()) {
		e.NativeID, e.Created = info.SessionID, now()
	}
	if info.Model != "" {
		e.NativeModel = strings.ToValidUTF8(info.Model[:min(len(info.Model), maxReported)], "")
	}
}

func (h *held) current() Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry
}

// enter begins to pass on a message, which sending.Done ends.
func (h *held) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("%w: %s", ErrNotRunning, h.entry.SessionID)
	}
	h.sending.Add(1)
	return nil
}

// check refuses a message that the session cannot take.
func (h *held) check(m Message) error {
	if err := h.starting.check(m); err != nil {
		return err
	}
	return h.s.Check(m.message())
}

func (h *held) send(m Message) (*session.Turn, error) {
	if err := h.check(m); err != nil {
		return nil, err
	}
	if err := h.enter(); err != nil {
		return nil, err
	}
	defer h.sending.Done()
	defer h.signal()
	return h.served.send(h.s, m.message()), nil
}

// steer reports also whether the turn was running before.
func (h *held) steer(ctx context.Context, m Message) (turn *session.Turn, steered bool, err error) {
	if err := h.check(m); err != nil {
		return nil, false, err
	}
	if err := h.enter(); err != nil {
		return nil, false, err
	}
	defer h.sending.Done()
	defer h.signal()
	last, _ := h.s.Turns()
	turn = h.s.Steer(ctx, m.message())
	h.served.record(LogRecord{Turn: turn.Number(), Message: m.Text, Attachments: agent.AttachmentInfos(m.Attachments)})
	return turn, turn.Number() <= last, nil
}

// record keeps the entry until the session has ended.
func (h *held) record() {
	var idle <-chan time.Time
	for {
		if limit := h.starting.entry.Idle; limit > 0 {
			if _, open := h.s.Turns(); open > 0 {
				idle = nil
			} else if idle == nil {
				idle = time.After(limit)
			}
		}
		select {
		case <-h.wake:
			happened := h.happens.take()
			h.save() // before the end of a turn is seen, because a crash may follow
			h.tell(happened)
		case <-idle:
			if _, open := h.s.Turns(); open == 0 {
				go h.stop(context.Background(), "idle for "+h.starting.entry.Idle.String())
			}
			idle = nil
		case <-h.s.Ended():
			h.end()
			return
		}
	}
}

// tell logs what became of messages and notifies the hooks.
func (h *held) tell(happened []happening) {
	for _, what := range happened {
		if what.over == nil {
			h.emit(OnMessage, map[string]string{"message": what.text})
			continue
		}
		result, err := what.over.Wait(context.Background()) // is over
		h.served.recordOver(&h.ends, LogRecord{Turn: what.over.Number(), Ended: newResult(result, err)})
		if err != nil && !errors.Is(err, agent.ErrCanceled) {
			h.emit(OnError, errorData(err))
		}
	}
}

// reached reports whether the session is in a state. It is ready when the end of
// all turns is written; then it will not wait for an answer either. Whatever makes it
// true is logged afterwards.
func (h *held) reached(state session.State) bool {
	last, _ := h.s.Turns()
	now := h.s.State()
	if now == session.StateReady {
		return int64(last) <= h.ends.Load() && (state == session.StateReady || state == session.StateWaiting)
	}
	return now == state
}

func errorData(err error) map[string]string {
	return map[string]string{"message": err.Error(), "kind": agent.KindOf(err)}
}

// save writes the entry if it has changed.
func (h *held) save() {
	state := h.s.State()
	h.waiting.Store(state == session.StateWaiting)
	info := h.s.Info()
	turns, _ := h.s.Turns()
	h.mu.Lock()
	h.entry.Turns = turns
	h.entry.learn(info)
	if !state.Ended() { // end does that
		h.entry.State = state
	}
	e := h.entry
	h.mu.Unlock()
	if !reflect.DeepEqual(e, h.saved) {
		h.write(e)
	}
}

// write writes the entry; a session does not need it.
func (h *held) write(e Entry) {
	h.saved = e
	if err := h.store.put(context.Background(), e); err != nil && !h.warned {
		h.warned = true
		h.warn(fmt.Sprintf("the entry of session %s cannot be written: %v", e.SessionID, err))
	}
}

// end notes the end of the session.
func (h *held) end() {
	<-h.s.Done()
	failure := h.s.Err()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.sending.Wait() // messages that came too late end too
	h.tell(h.happens.take())
	info := h.s.Info()
	turns, _ := h.s.Turns()
	h.mu.Lock()
	h.entry.learn(info)
	e := &h.entry
	e.Turns = turns
	e.State, e.Reason, e.Ended = session.StateStopped, h.reason, now()
	switch {
	case h.stopped:
	case failure != nil:
		e.State, e.Reason = session.StateCrashed, failure.Error()
	default:
		e.Reason = "the agent has ended"
	}
	last := *e
	h.mu.Unlock()
	if last.State == session.StateCrashed {
		h.emit(OnError, errorData(failure))
	}
	h.emit(SessionStop, map[string]string{"message": last.Reason})
	h.closeHooks()
	h.served.end(last.Reason)
	h.write(last)
	m := h.manager
	m.mu.Lock()
	if m.held[last.SessionID] == h {
		delete(m.held, last.SessionID)
	}
	m.mu.Unlock()
	h.served.dismiss()
	close(h.over)
}

// closeHooks waits until the hooks of the session have taken their events.
func (h *held) closeHooks() {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	h.hooks.Close(ctx)
}

// stop ends the session. One that has ended by itself keeps its own reason.
func (h *held) stop(ctx context.Context, reason string) {
	ended := h.s.Ended()
	h.mu.Lock()
	select {
	case <-ended:
	default:
		if !h.stopped {
			h.stopped, h.reason = true, reason
		}
	}
	h.mu.Unlock()
	h.s.Stop(ctx, reason)
	<-h.over
}

// emit notifies the hooks of an event.
func (h *held) emit(event Event, data map[string]string) {
	p := h.starting.entry.payload(event, data) // its fields do not change
	h.manager.Hooks.Emit(p)
	h.hooks.Emit(p)
}

// status returns what the session is doing.
func (h *held) status() *Status {
	info := h.s.Info()
	st := &Status{Entry: h.current(), Running: true, Approvals: h.s.Approvals(), Questions: h.s.Questions(), Steers: info.Steers}
	st.Entry.learn(info) // which may not be saved yet
	last, open := h.s.Turns()
	st.State, st.Turns, st.Waiting = h.s.State(), last, max(0, open-1)
	if st.State == session.StateStopped {
		st.State = session.StateStopping // until the entry shows it
	}
	return st
}
