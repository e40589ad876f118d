package tmux

import (
	"context"
	"errors"
	"time"
)

const (
	settlePoll  = 50 * time.Millisecond
	settleLimit = 4 * time.Second
	// settleBytes of a message may take a second more to be shown.
	settleBytes = 32 << 10
	// escapeTime is how long CLIs wait for what could follow Escape in a sequence.
	escapeTime = 600 * time.Millisecond

	firstPause = 500 * time.Millisecond
	mostPause  = 2 * time.Second
	undoLimit  = 5 * time.Second

	// readLimit is how long an agent may take to read what was typed, on a machine that
	// is very busy.
	readLimit = 30 * time.Second
)

// enterWaits are how long each Enter may take to change the screen.
var enterWaits = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second}

// Errors of a delivery.
var (
	errEmpty    = errors.New("the message is empty")
	errUnseen   = errors.New("the terminal does not show what is typed")
	errNoEffect = errors.New("the message is in the input of the agent, but Enter has no effect")
	errEnded    = errors.New("the agent has ended")
	errAsks     = errors.New("the agent waits for the answer to an approval request")
)

// delivered holds the screens around the delivery of a message.
type delivered struct {
	before screen // before it was typed
	typed  screen // before it was submitted
	after  screen // once it was submitted
}

// deliver types text and submits it. With an error it clears the input again, as far
// as possible.
func (e *paneEngine) deliver(ctx context.Context, text string) (d delivered, err error) {
	text = guard(sanitize(text), e.terminal.Commands)
	if text == "" {
		return d, errEmpty
	}
	if e.terminal.SpaceLast {
		text += " "
	}
	if d.before, err = e.look(ctx); err != nil {
		return d, err
	}
	if e.terminal.approval(d.before) != nil {
		return d, errAsks
	}
	defer func() {
		if err != nil && !errors.Is(err, errAsks) { // a key could answer the request
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
			defer cancel()
			_ = e.pane.press(undo, e.terminal.Clear) // err has the cause
		}
	}()
	if d.typed, err = e.typeIn(ctx, text, d.before); err != nil {
		return d, err
	}
	if e.terminal.EscapeFirst {
		if err = e.pane.press(ctx, "Escape"); err != nil {
			return d, err
		}
		if err = sleep(ctx, escapeTime); err != nil {
			return d, err
		}
	}
	if err = sleep(ctx, e.terminal.EnterPause); err != nil {
		return d, err
	}
	if d.typed, err = e.look(ctx); err != nil {
		return d, err
	}
	d.after, err = e.submit(ctx, d.typed)
	return d, err
}

// typeIn types text until the terminal shows it, and returns that screen.
func (e *paneEngine) typeIn(ctx context.Context, text string, before screen) (screen, error) {
	giveUp := time.Now().Add(e.terminal.RetryBudget)
	limit := settleLimit + time.Duration(len(text)/settleBytes)*time.Second
	for pause := firstPause; ; pause = min(pause*3/2, mostPause) {
		if err := e.write(ctx, text); err != nil {
			return screen{}, err
		}
		s, err := e.settle(ctx, before, limit)
		if err != nil || !s.same(before) && (!e.terminal.Placeholder || !e.terminal.prompts(s)) {
			return s, err
		}
		if time.Now().Add(pause).After(giveUp) {
			return s, errUnseen
		}
		if err := sleep(ctx, pause); err != nil {
			return s, err
		}
		// A CLI that has not read the first copy yet must not get two.
		if err := e.pane.press(ctx, e.terminal.Clear); err != nil {
			return s, err
		}
	}
}

func (e *paneEngine) write(ctx context.Context, text string) error {
	if !e.terminal.Keys {
		return e.pane.paste(ctx, text)
	}
	for chunk := range chunks(text, maxChunk) {
		if err := e.pane.write(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the screen differs from before and no longer changes, at most for
// limit. The screen of an agent that works always changes.
func (e *paneEngine) settle(ctx context.Context, before screen, limit time.Duration) (screen, error) {
	last := before
	latest := time.Now().Add(readLimit)
	for giveUp := time.Now().Add(limit); ; {
		if err := sleep(ctx, settlePoll); err != nil {
			return last, err
		}
		s, err := e.look(ctx)
		if err != nil {
			return s, err
		}
		shown := !s.same(before) && (!e.terminal.Placeholder || e.terminal.holds(s))
		if s.same(last) && shown || time.Now().After(giveUp) {
			return s, nil
		}
		giveUp = e.unlessRead(giveUp, limit, latest)
		last = s
	}
}

// unlessRead returns giveUp, or limit from now if the agent has not read what was typed;
// never later than latest. What is typed again before that is read together with the
// first: Gemini 0.61.0 then submits a message twice.
func (e *paneEngine) unlessRead(giveUp time.Time, limit time.Duration, latest time.Time) time.Time {
	if later := time.Now().Add(limit); later.Before(latest) && e.pane.unread() {
		return later
	}
	return giveUp
}

// submit presses Enter until it has an effect, but never while an approval request is
// shown.
func (e *paneEngine) submit(ctx context.Context, typed screen) (screen, error) {
	latest := time.Now().Add(readLimit)
	for _, wait := range enterWaits {
		if now, err := e.look(ctx); err != nil {
			return typed, err
		} else if e.terminal.approval(now) != nil {
			return typed, errAsks
		}
		if err := e.pane.press(ctx, "Enter"); err != nil {
			return typed, err
		}
		for giveUp := time.Now().Add(wait); time.Now().Before(giveUp); {
			if err := sleep(ctx, settlePoll); err != nil {
				return typed, err
			}
			s, err := e.pane.look(ctx)
			switch {
			case errors.Is(err, errNoServer): // the message has ended the agent
				return typed, nil
			case err != nil || !s.same(typed) && !e.terminal.holds(s):
				return s, err
			}
			giveUp = e.unlessRead(giveUp, wait, latest)
		}
	}
	return typed, errNoEffect
}

// look is pane.look with errEnded for an agent that has ended.
func (e *paneEngine) look(ctx context.Context) (screen, error) {
	s, err := e.pane.look(ctx)
	if err == nil && s.dead {
		err = errEnded
	}
	return s, err
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
