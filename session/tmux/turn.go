package tmux

import (
	"context"
	"time"
)

// A turn is one that runs.
type turn struct {
	delivered
	worked      bool // the agent was seen busy
	interrupted bool
	last        screen
	still       int       // looks in a row that found nothing changed
	since       time.Time // when something changed last
}

func newTurn(d delivered) *turn {
	return &turn{delivered: d, last: d.after, since: time.Now()}
}

// restart makes the turn go on after something was typed.
func (t *turn) restart(now time.Time) { t.still, t.since = 0, now }

// over takes note of what the terminal shows now and reports whether the turn is
// over.
func (t *turn) over(terminal *Terminal, s screen, now time.Time) bool {
	same := s.same(t.last)
	t.last = s
	switch {
	case !terminal.idle(s):
		t.worked = true
		t.restart(now)
		return false
	case !same:
		t.restart(now)
		return false
	}
	t.still++
	if terminal.marked() && (t.worked || t.interrupted) {
		return t.still >= looksInRow
	}
	return now.Sub(t.since) >= terminal.Quiet
}

// follow looks at the terminal until t is over or the agent has ended.
func (e *engine) follow(t *turn) {
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
		if text, over := e.judge(ctx, t); over {
			for _, event := range t.result(text) {
				e.sink.Event(event)
			}
			return
		}
	}
}

// judge reports whether t is over and what its text is. A look that fails tells
// nothing: the end of the agent is seen elsewhere.
func (e *engine) judge(ctx context.Context, t *turn) (text string, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.look(ctx)
	if err != nil || !t.over(&e.terminal, s, time.Now()) {
		return "", false
	}
	lines, err := e.pane.since(ctx, t.before.history, s)
	if err != nil {
		lines = s.lines
	}
	e.current = nil
	return gained(t.before.lines, t.typed.lines, lines), true
}
