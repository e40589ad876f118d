package session

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// turn sends a message and shows its turn. It reports whether the conversation
// continues.
func (c *chat) turn(ctx context.Context, text string) (bool, error) {
	c.inTurn.Store(true)
	defer c.inTurn.Store(false)
	turn, err := c.manager.Send(c.handle, control.Message{Text: text})
	if err != nil {
		c.screen.Line(c.prog.Describe(err))
		return true, nil
	}
	var t chatTurn
	for {
		if !c.takeKeys(ctx, &t) {
			return false, nil
		}
		requests := c.requests
		if t.open != nil {
			requests = nil
		}
		select {
		case <-ctx.Done():
			return false, cmdline.StoppedBy(ctx)
		case <-turn.Done():
			if _, err := turn.Wait(ctx); err != nil && !t.interrupted {
				c.screen.Line(c.prog.Describe(err))
			}
			return c.dropAnswer(ctx, &t), nil
		case t.open = <-requests:
			c.show(t.open)
			t.drawn = c.keys.draw() // before the prompt, so that an answer to the prompt counts
			c.prompt(&t)
		case <-t.open.isOver():
			if !c.takeKeys(ctx, &t) { // typed before the user could know
				return false, nil
			}
			t.close()
		case <-c.keys.more:
		}
	}
}

// chatTurn is a turn that runs, and how far the user has answered its request.
type chatTurn struct {
	interrupted bool
	open        *chatRequest
	drawn       int    // see keys.draw
	line        []byte // typed to answer
	cut         bool   // line was begun for a request that is over
}

// close records that no request is open.
func (t *chatTurn) close() {
	t.cut = t.cut || len(t.line) > 0
	t.open, t.line = nil, nil
}

// takeKeys handles what was typed, and reports whether the conversation continues.
//
// The first whole line that was begun after a request was drawn answers it. Everything
// typed before, and the rest of a line begun then, is kept for the next message.
func (c *chat) takeKeys(ctx context.Context, t *chatTurn) bool {
	for {
		press, ok, ended := c.keys.next()
		asked := t.open != nil && press.drawn >= t.drawn
		switch key := press.key; {
		case !ok:
			return !ended
		case asked && key == ctrlC:
			t.cut = false
			c.reply(t, chatReply{decision: session.Cancel})
		case t.cut && key != ctrlC: // the rest of an answer, which may be a secret
			if t.cut = !isEnter(key); asked && !t.cut {
				c.prompt(t)
			}
		case asked && c.keys.inLine():
			if c.keys.later(key); isEnter(key) {
				c.screen.Line("the line you had begun is kept for the next message")
				c.prompt(t)
			}
		case asked && isEnter(key):
			c.takeLine(t)
		case asked:
			c.edit(t, key)
		case key != ctrlC:
			c.keys.later(key)
		case t.interrupted:
			return false
		default:
			t.interrupted, t.cut = true, false
			c.screen.Line("^C")
			go c.session.Interrupt(ctx) // the turn reports the outcome
		}
	}
}

// dropAnswer drops an answer that is being typed when the turn ends: it may be a secret, and
// must not become the next message. It reports whether the conversation continues.
func (c *chat) dropAnswer(ctx context.Context, t *chatTurn) bool {
	next := c.takeKeys(ctx, t)
	if t.close(); t.cut {
		c.screen.Line("your answer comes too late; press Enter to drop it")
	}
	for next && t.cut {
		select {
		case <-c.keys.more:
			next = c.takeKeys(ctx, t)
		case <-c.keys.over:
			return true
		case <-ctx.Done():
			return true
		}
	}
	return next
}

// takeLine takes a whole line for the open request.
func (c *chat) takeLine(t *chatTurn) {
	line := string(t.line)
	t.line = nil
	r := t.open
	switch {
	case r.asked == nil:
		if d := decisionFor(line); d != "" {
			c.reply(t, chatReply{decision: d})
			return
		}
	case strings.TrimSpace(line) == declineWord:
		c.reply(t, chatReply{decision: session.Decline})
		return
	default:
		answer, err := r.asked.Questions[len(r.answers)].Parse(line)
		if err != nil {
			c.screen.Line(c.prog.Describe(err))
			break
		}
		if r.answers = append(r.answers, answer); len(r.answers) == len(r.asked.Questions) {
			c.reply(t, chatReply{answers: r.answers})
			return
		}
	}
	c.prompt(t)
}

// edit changes the answer that is typed.
func (c *chat) edit(t *chatTurn, key byte) {
	isText := t.open.asked != nil // any text can be the answer
	switch {
	case key == ctrlU:
		t.line = nil
		c.prompt(t)
	case key == backspace || key == del:
		if len(t.line) > 0 {
			_, size := utf8.DecodeLastRune(t.line)
			t.line = t.line[:len(t.line)-size]
			io.WriteString(c.screen, "\n")
			c.prompt(t)
			c.echo(t, t.line)
		}
	case key >= ' ' && key < del:
		t.line = append(t.line, key)
		c.echo(t, []byte{key})
	case key > del && isText:
		t.line = append(t.line, key)
		if r, size := utf8.DecodeLastRune(t.line); r != utf8.RuneError { // a whole character
			c.echo(t, t.line[len(t.line)-size:])
		}
	case isText: // a control key
	default: // never part of an answer
		t.line = append(t.line, '?')
	}
}

// echo shows what is typed, unless it is a secret.
func (c *chat) echo(t *chatTurn, text []byte) {
	if q := t.open.question(); q == nil || !q.Secret {
		c.screen.Write(text)
	}
}

func (c *chat) reply(t *chatTurn, r chatReply) {
	if r.decision != "" {
		c.screen.Line(string(r.decision)) // before what the agent says to it
	} else {
		c.screen.EndLine()
	}
	t.open.reply <- r
	t.open, t.line = nil, nil
}
