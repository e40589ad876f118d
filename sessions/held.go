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

	mu      sync.Mutex
	entry   Entry
	turns   []*sent
	closed  bool // takes no more turns
	stopped bool // by Stop
	reason  string
}

// sent is a message on its way.
type sent struct {
	turn *session.Turn
	text string
	told bool // that it was delivered
}

func newHeld(m *Manager, store *Store, p *plan) *held {
	return &held{manager: m, store: store, plan: p, entry: p.entry, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// events returns a callback for events that looks at what changes the entry.
func (h *held) events(next func(*agent.Event)) func(*agent.Event) {
	return func(e *agent.Event) {
		if next != nil {
			next(e)
		}
		if e.Kind == agent.KindApproval || e.Kind == agent.KindSessionStarted || h.waiting.Load() {
			h.awake()
		}
	}
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

// send queues a message.
func (h *held) send(m session.Message) (*session.Turn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, h.entry.SessionID)
	}
	turn := h.s.Send(m)
	h.turns = append(h.turns, &sent{turn: turn, text: m.Text})
	h.awake()
	return turn, nil
}

// next returns the oldest message that is on its way.
func (h *held) next() *sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.turns) == 0 {
		return nil
	}
	return h.turns[0]
}

// record keeps the entry until the session has ended.
func (h *held) record() {
	for {
		var delivered, done, ended <-chan struct{}
		m := h.next()
		if m == nil {
			ended = h.s.Ended()
		} else {
			done = m.turn.Done()
			if !m.told {
				delivered = m.turn.Delivered()
			}
		}
		select {
		case <-h.wake:
		case <-delivered:
			h.tell(m)
		case <-done:
			h.finish(m)
		case <-ended:
			if h.end() {
				return
			}
		}
		h.save()
	}
}

// tell tells the hooks that a message was delivered.
func (h *held) tell(m *sent) {
	m.told = true
	h.emit(OnMessage, map[string]string{"message": m.text})
}

// finish ends the way of a message.
func (h *held) finish(m *sent) {
	select {
	case <-m.turn.Delivered():
		if !m.told {
			h.tell(m)
		}
	default:
	}
	h.mu.Lock()
	h.turns = h.turns[1:]
	h.mu.Unlock()
	if _, err := m.turn.Wait(context.Background()); err != nil && !errors.Is(err, agent.ErrCanceled) {
		h.emit(OnError, errorData(err))
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

// end takes note of the end of the session, unless a message came meanwhile,
// which has an end of its own to be told.
func (h *held) end() bool {
	<-h.s.Done()
	failure := h.s.Err()
	h.mu.Lock()
	if len(h.turns) > 0 {
		h.mu.Unlock()
		return false
	}
	h.closed = true
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
	return true
}

// stop ends the session.
func (h *held) stop(ctx context.Context, reason string) {
	h.mu.Lock()
	if !h.stopped {
		h.stopped, h.reason = true, reason
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
