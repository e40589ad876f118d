package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// conversation is the session with the record of what happens in it.
type conversation struct {
	log  *eventLog
	idle time.Duration // 0: never
	stop func(reason string)
	note func(*agent.Event) // called with each event first

	mu      sync.Mutex
	agent   Agent            // nil until it is open
	session *session.Session // of the agent
	turns   []*turn          // those that are not over, in order
	number  int              // of the last turn
	timer   *time.Timer      // of idle; nil while there are turns
	over    bool             // no more messages are taken
	ending  sync.WaitGroup   // the turns whose end is not written
}

// turn is a message and what becomes of it.
type turn struct {
	number int
	turn   *session.Turn // nil for a message that may still reach the turn before
	urgent bool
}

var errNotReady = &agent.Error{Kind: agent.ErrAgent, Err: errors.New("the session is not ready yet")}

// over reports whether the turn has ended.
func (t *turn) over() bool {
	if t.turn == nil {
		return false
	}
	select {
	case <-t.turn.Done():
		return true
	default:
		return false
	}
}

// opened takes the session once it is open.
func (c *conversation) opened(a Agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agent, c.session = a, a.Session()
	c.rest()
}

// warn writes a warning down.
func (c *conversation) warn(text string) { c.log.append(Record{Warning: text}) }

// event writes an event down. It is the callback of the session.
func (c *conversation) event(e *agent.Event) error {
	if c.note != nil {
		c.note(e)
	}
	if e.Kind != agent.KindHeartbeat {
		c.log.append(Record{Turn: e.Turn, Event: e})
	}
	return nil
}

// refusal is why no message is taken; c.mu is held.
func (c *conversation) refusal() error {
	switch {
	case c.session == nil:
		return errNotReady
	case c.over:
		return &agent.Error{Kind: agent.ErrCanceled, Err: session.ErrStopped}
	}
	return nil
}

// finish takes no more messages and waits until the end of all turns is written.
func (c *conversation) finish() {
	c.mu.Lock()
	c.over = true
	c.wake()
	c.mu.Unlock()
	c.ending.Wait()
}

// running returns the number of the turn that is running, 0 when none is. A turn
// is over before the next one begins, so it is the first that is not.
func (c *conversation) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.turns {
		if !t.over() {
			return t.number
		}
	}
	return 0
}

// send queues a message, and returns its turn and a cursor at its record.
func (c *conversation) send(text string) (*turn, *cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refusal(); err != nil {
		return nil, nil, err
	}
	at, err := c.log.end()
	if err != nil {
		return nil, nil, err
	}
	// What is said in the turn is written down after the message: event needs c.mu.
	sent, err := c.agent.Send(session.Message{Text: text})
	if err != nil {
		at.close()
		return nil, nil, err
	}
	c.number = sent.Number()
	t := &turn{number: c.number, turn: sent}
	c.turns = append(c.turns, t)
	c.wake()
	c.log.append(Record{Turn: t.number, Message: text})
	c.ending.Go(func() { c.await(t) })
	return t, at, nil
}

// steer adds a message to the running turn. It returns the turn that has got it
// and whether that was running before.
func (c *conversation) steer(ctx context.Context, text string) (*turn, bool, error) {
	c.mu.Lock()
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return nil, false, err
	}
	before := slices.Clone(c.turns)
	// Should it become a turn, that is the next one after what runs now.
	t := &turn{urgent: true}
	at := 0
	for at < len(c.turns) && (c.turns[at].urgent || at == 0) {
		at++
	}
	c.turns = slices.Insert(c.turns, at, t)
	c.wake()
	c.ending.Add(1)
	c.mu.Unlock()

	got, err := c.agent.Steer(ctx, session.Message{Text: text})

	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.remove(t)
		c.log.wake()
		c.ending.Done()
		return nil, false, err
	}
	for _, running := range before {
		if running.turn == got {
			c.remove(t)
			c.ending.Done()
			c.log.append(Record{Turn: running.number, Message: text})
			return running, true, nil
		}
	}
	t.turn, t.number = got, got.Number()
	c.number = max(c.number, t.number)
	c.log.append(Record{Turn: t.number, Message: text})
	go func() {
		defer c.ending.Done()
		c.await(t)
	}()
	return t, false, nil
}

// await writes the end of a turn down.
func (c *conversation) await(t *turn) {
	<-t.turn.Done()
	result, err := t.turn.Wait(context.Background()) // is over
	// In one step: who sees the record sees that the turn is no more, see reached.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.append(Record{Turn: t.number, Ended: newResult(result, err)})
	c.remove(t)
}

// reached reports whether the session is in a state. It is ready when no message
// waits and the end of all turns is written. Whatever makes it true wakes those
// that wait for the log.
func (c *conversation) reached(state session.State) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == session.StateReady && len(c.turns) > 0 {
		return false
	}
	return c.session.State() == state
}

// remove takes a turn out; c.mu is held.
func (c *conversation) remove(t *turn) {
	for i := range c.turns {
		if c.turns[i] == t {
			c.turns = slices.Delete(c.turns, i, i+1)
			break
		}
	}
	if len(c.turns) == 0 {
		c.rest()
	}
}

// rest begins to wait for the next message, wake ends that; c.mu is held.
func (c *conversation) rest() {
	if c.idle > 0 && c.timer == nil && !c.over {
		c.timer = time.AfterFunc(c.idle, func() { c.stop("idle for " + c.idle.String()) })
	}
}

func (c *conversation) wake() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// answer answers a question; "" is the only one that is open.
func (c *conversation) answer(ctx context.Context, approval string, d session.Decision) error {
	s := c.live()
	if s == nil {
		return errNotReady
	}
	if approval == "" {
		switch open := s.Approvals(); len(open) {
		case 0:
			return &agent.Error{Kind: agent.ErrAgent, Err: errors.New("no question is open")}
		case 1:
			approval = open[0].ID
		default:
			return agent.Usagef("%d questions are open; say which one is answered", len(open))
		}
	}
	err := s.Answer(ctx, approval, d)
	if errors.Is(err, session.ErrTooLate) {
		return &agent.Error{Kind: agent.ErrAgent, Err: errors.New("the question is not open: it was answered, is out of time, or its turn is over")}
	}
	if err == nil {
		c.log.append(Record{Turn: c.running(), Answered: &Answered{approval, d}})
	}
	return err
}

// live returns the session, nil before it is open.
func (c *conversation) live() *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// status completes what is known of the session.
func (c *conversation) status(e Entry) *Status {
	st := &Status{Entry: e, State: StateStarting, Questions: []Question{}}
	s := c.live()
	if s == nil {
		return st
	}
	info := s.Info()
	st.State, st.Steers = string(s.State()), info.Steers
	if s.State() == session.StateStopped {
		st.State = StateStopping
	}
	for _, a := range s.Approvals() {
		st.Questions = append(st.Questions, Question{ID: a.ID, Tool: a.Tool, Reason: a.Reason})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.Turns, st.Waiting = c.number, max(0, len(c.turns)-1)
	return st
}
