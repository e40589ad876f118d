package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
)

// held is a session that a Manager holds. One goroutine, record, keeps its entry
// and tells the hooks, in the order in which things happen.
type held struct {
	manager *Manager
	store   *Store
	plan    *plan
	s       *session.Session
	wake    chan struct{}
	over    chan struct{} // closed when the entry says that the session has ended
	waiting atomic.Bool   // the entry says that it waits for an answer
	warned  bool          // of the entry, by record
	happens happenings
	sending sync.WaitGroup // messages that are on their way to the session

	mu      sync.Mutex
	entry   Entry
	closed  bool // takes no more messages
	stopped bool // by Stop
	reason  string
}

func newHeld(m *Manager, store *Store, p *plan) *held {
	return &held{manager: m, store: store, plan: p, entry: p.entry, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// happenings are what became of messages and was not told yet, in order. The
// session adds to it while it holds its own lock.
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

// listen returns o with callbacks that take note of what changes the entry or is
// told to hooks.
func (h *held) listen(o session.Options) session.Options {
	events, delivered, over := o.Events, o.Delivered, o.Over
	o.Events = func(e *agent.Event) (err error) {
		if events != nil {
			err = events(e)
		}
		if e.Kind == agent.KindApproval || e.Kind == agent.KindSessionStarted || h.waiting.Load() {
			h.awake()
		}
		return err
	}
	o.Delivered = func(t *session.Turn, m session.Message) {
		if delivered != nil {
			delivered(t, m)
		}
		h.happens.add(happening{text: m.Text})
		h.awake()
	}
	o.Over = func(t *session.Turn) {
		if over != nil {
			over(t)
		}
		h.happens.add(happening{over: t})
		h.awake()
	}
	return o
}

func (h *held) awake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// opened takes note of the session once it can take messages.
func (h *held) opened(ctx context.Context, s *session.Session, resumed bool) error {
	h.s = s
	e := &h.entry
	e.State, e.Ready, e.PID = StateReady, now(), s.PID()
	if identity, err := process.Identify(e.PID); err == nil {
		e.Process = identity
	} // else it has ended already
	h.learn(s.Info())
	if err := h.store.Save(ctx, *e); err != nil {
		return err
	}
	data := map[string]string{"message": "started", "native_session_id": e.NativeID}
	if resumed {
		data["message"] = "resumed"
	}
	h.emit(SessionStart, data)
	return nil
}

// learn takes note of what the runtime has told.
func (h *held) learn(info session.Info) {
	if info.SessionID != "" && (info.SessionID != h.entry.NativeID || h.entry.Created.IsZero()) {
		h.entry.NativeID, h.entry.Created = info.SessionID, now()
	}
}

func (h *held) handle() SessionHandle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry.Handle()
}

// say passes a message on by way, Send or Steer.
func (h *held) say(way func() *session.Turn) (*session.Turn, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, h.entry.SessionID)
	}
	h.sending.Add(1)
	h.mu.Unlock()
	defer h.sending.Done()
	return way(), nil
}

func (h *held) send(m session.Message) (*session.Turn, error) {
	return h.say(func() *session.Turn { return h.s.Send(m) })
}

// record keeps the entry until the session has ended.
func (h *held) record() {
	for {
		select {
		case <-h.wake:
			h.tell()
			h.save()
		case <-h.s.Ended():
			h.end()
			return
		}
	}
}

// tell tells the hooks what became of messages.
func (h *held) tell() {
	for _, what := range h.happens.take() {
		if what.over == nil {
			h.emit(OnMessage, map[string]string{"message": what.text})
			continue
		}
		if _, err := what.over.Wait(context.Background()); err != nil && !errors.Is(err, agent.ErrCanceled) {
			h.emit(OnError, errorData(err))
		}
	}
}

func errorData(err error) map[string]string {
	return map[string]string{"message": err.Error(), "kind": agent.KindOf(err)}
}

// save writes the entry if it has changed.
func (h *held) save() {
	state := State(h.s.State())
	h.waiting.Store(state == StateWaiting)
	h.mu.Lock()
	before := h.entry
	h.learn(h.s.Info())
	if !state.Ended() { // record says so when it is over
		h.entry.State = state
	}
	e := h.entry
	h.mu.Unlock()
	if e != before {
		h.write(e)
	}
}

// write writes the entry; a session goes on without.
func (h *held) write(e Entry) {
	if err := h.store.Save(context.Background(), e); err != nil && !h.warned {
		h.warned = true
		h.manager.warn(fmt.Sprintf("the entry of session %s cannot be written: %v", e.SessionID, err))
	}
}

// end takes note of the end of the session.
func (h *held) end() {
	<-h.s.Done()
	failure := h.s.Err()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.sending.Wait() // what came too late has an end of its own to be told
	h.tell()
	h.mu.Lock()
	h.learn(h.s.Info())
	e := &h.entry
	e.State, e.Reason, e.Ended = StateStopped, h.reason, now()
	switch {
	case h.stopped:
	case failure != nil:
		e.State, e.Reason = StateCrashed, failure.Error()
	default:
		e.Reason = "the agent has ended"
	}
	last := *e
	h.mu.Unlock()
	if last.State == StateCrashed {
		h.emit(OnError, errorData(failure))
	}
	h.emit(SessionStop, map[string]string{"message": last.Reason})
	h.write(last)
	m := h.manager
	m.mu.Lock()
	if m.held[last.SessionID] == h {
		delete(m.held, last.SessionID)
	}
	m.mu.Unlock()
	close(h.over)
}

// stop ends the session. One that has ended by itself keeps its own reason.
func (h *held) stop(ctx context.Context, reason string) {
	h.mu.Lock()
	select {
	case <-h.s.Ended():
	default:
		if !h.stopped {
			h.stopped, h.reason = true, reason
		}
	}
	h.mu.Unlock()
	h.s.Stop(ctx, reason)
	<-h.over
}

// emit tells the hooks of an event.
func (h *held) emit(event Event, data map[string]string) {
	e := h.plan.entry // what is told does not change
	h.manager.Hooks.Emit(Payload{
		Event: event, Runtime: e.Runtime, SessionID: e.SessionID, WorkDir: e.WorkDir,
		Rig: e.Rig, Role: e.Role, Bead: e.Bead, Actor: e.Actor, Timestamp: Timestamp{now()}, Data: data,
	})
}
