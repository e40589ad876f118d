package tmux

import (
	"context"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/agent"
)

const (
	poll = 200 * time.Millisecond
	// looksInRow is how many looks in a row must find the same.
	looksInRow = 2
	// keyPause is the pause between the keys of an answer, which some menus need.
	keyPause = 200 * time.Millisecond
	// still is how long the screen must not change before an agent at its prompt is
	// ready, because CLIs show the prompt before they have started and loaded the
	// session. After impatience looks at the prompt the agent is ready in any case.
	still      = 2 * time.Second
	impatience = 50
	// unrestoredLooks is the number of looks at the prompt after which a session is
	// considered loaded although the screen shows none of Terminal.Restored: it may have
	// no turn that the CLI shows.
	unrestoredLooks = 150
	// dialogWait is how long a dialog may take to react to its answer.
	dialogWait = 2 * time.Second
)

// ready waits until a message can be typed and a resumed session is loaded, and answers
// the dialogs.
func (e *paneEngine) ready(ctx context.Context, resumed bool) error {
	began := time.Now()
	var last screen
	var changed time.Time
	dialogs := make([]dialogState, len(e.terminal.Dialogs))
	unrestored := 0
	for idle := 0; ; {
		s, err := e.pane.look(ctx)
		if err != nil {
			return err
		}
		if s.dead {
			return errEnded
		}
		asked, err := e.answerDialog(ctx, s, dialogs)
		switch {
		case err != nil:
			return err
		case asked || !e.terminal.idle(s) || !e.terminal.started(s):
			idle = 0
		case resumed && !e.terminal.restored(s) && unrestored < unrestoredLooks:
			unrestored++
		default:
			idle++
		}
		if !s.same(last) {
			last, changed = s, time.Now()
		}
		waited := time.Since(began)
		switch {
		case e.terminal.Prompt == "" && !asked && waited >= min(e.terminal.WarmUp, e.terminal.StartTimeout):
			return nil
		case e.terminal.Prompt != "" && idle >= looksInRow && (time.Since(changed) >= still || idle > impatience):
			return nil
		case waited >= e.terminal.StartTimeout:
			return &agent.Error{Kind: agent.ErrTimeout, Runtime: e.runtime,
				Err: screenError(e.mask, fmt.Errorf("the agent is not ready after %v", e.terminal.StartTimeout), s)}
		}
		if err := sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// dialogState is the state of a dialog.
type dialogState struct {
	answered time.Time // zero before
	shown    screen    // when it was answered
	over     bool
}

// answerDialog answers the first open dialog and reports whether there was one. The
// text of an answered dialog may stay on the screen, so the dialog is over as soon as
// the screen has changed. If it does not change the keys may have been lost, and the
// dialog is answered again after dialogWait.
func (e *paneEngine) answerDialog(ctx context.Context, s screen, states []dialogState) (asked bool, err error) {
	for i, d := range e.terminal.Dialogs {
		state := &states[i]
		if state.over || !s.contains(d.Contains) {
			continue
		}
		if !state.answered.IsZero() {
			if !s.same(state.shown) {
				state.over = true
				continue
			}
			if time.Since(state.answered) < dialogWait {
				return true, nil
			}
		}
		state.answered, state.shown = time.Now(), s
		return true, e.press(ctx, d.Keys)
	}
	return false, nil
}
