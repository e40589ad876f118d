package tmux

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// A turn is the running turn.
type turn struct {
	delivered
	worked      bool // a check has found the agent busy
	interrupted bool
	last        screen
	still       int       // number of looks in a row without a change
	since       time.Time // last change
}

func newTurn(d delivered) *turn {
	return &turn{delivered: d, last: d.after, since: time.Now()}
}

// restart records a change.
func (t *turn) restart(now time.Time) { t.still, t.since = 0, now }

// over records the current screen and reports whether the turn is over.
func (t *turn) over(terminal *terminal, s screen, now time.Time) bool {
	same := s.same(t.last)
	t.last = s
	switch {
	case !terminal.idle(s) && !terminal.holds(s):
		t.worked = true
		t.restart(now)
		return false
	case !same:
		t.restart(now)
		return false
	}
	t.still++
	if t.still >= looksInRow && terminal.marked() && (t.interrupted || t.worked && len(terminal.Finished) == 0) {
		return true
	}
	return now.Sub(t.since) >= terminal.Quiet
}

// follow watches the terminal until t is over or the agent has ended.
func (e *paneEngine) follow(t *turn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.worked = t.worked || !e.terminal.idle(t.after)
	for {
		select {
		case <-e.ended:
			e.mu.Lock()
			e.current = nil
			e.mu.Unlock()
			return
		case <-time.After(poll):
		}
		report, over := e.judge(ctx, t)
		report()
		if over {
			return
		}
	}
}

// judge checks t once. It returns a function that reports what has changed, to be
// called without the lock, and whether t is over. An error is ignored here: wait finds
// the end of the agent.
func (e *paneEngine) judge(ctx context.Context, t *turn) (func(), bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.look(ctx)
	if err != nil {
		return func() {}, false
	}
	report := e.observe(ctx, s, time.Now())
	quiet := t.over(&e.terminal, s, time.Now())
	if !quiet && (t.still < looksInRow || !t.worked || len(e.terminal.Finished) == 0) {
		return report, false
	}
	lines, err := e.pane.since(ctx, t.before.history, s)
	if err != nil {
		lines = s.lines
	}
	text := gained(t.before.lines, t.typed.lines, lines)
	if !quiet && !e.terminal.finished(text) {
		return report, false
	}
	e.current = nil
	return func() {
		report()
		e.learn()
		for _, event := range t.result(text) {
			e.sink.Event(event)
		}
	}, true
}

// learn reports the ID of the session once it is known.
func (e *paneEngine) learn() {
	if e.known != "" {
		return
	}
	if e.known = e.sessionID(); e.known != "" {
		e.sink.Event(&agent.Event{Kind: agent.KindSessionStarted, SessionID: e.known})
	}
}
