package session

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// ChatCommand is "chat".
func ChatCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	return &urfave.Command{
		Name:      "chat",
		Usage:     "talk with an agent in this terminal",
		ArgsUsage: "[-- ARGS]",
		Description: `Starts an agent and a conversation with it. Enter sends your message. The agent's text
and actions are shown as they happen.

To answer an approval request, type y to accept, a to accept for the whole conversation,
n to decline or c to end the turn, then Enter. Text typed before the request was shown
does not answer it.

Ctrl-C ends the running turn. Ctrl-C twice, or Ctrl-D, ends the conversation. Ctrl-Z
suspends bus-agent, as in a shell; the agent continues.

The conversation is a session, which "session list" shows and the commands of "session"
can use from another terminal.`,
		Flags: slices.Concat(o.flags(prog),
			cmdline.Category("Session", cmdline.String("resume", "continue session `ID`, an ID of the runtime, not of bus-agent", &o.Resume))),
		UsageText: cmdline.UsageText(`# talk with an agent
bus-agent chat --agent RUNTIME`,
			"you ended the conversation", "the agent did not start, or it ended by itself"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			in, out, ok := terminalOf(prog)
			if !ok {
				return cmdline.Misusef("chat needs a terminal as standard input and output; use \"run\" or \"session\" without one")
			}
			opts, err := o.settle(ctx, prog, call.Rest)
			if err != nil {
				return err
			}
			return talk(ctx, prog, opts, o.Resume, in, out)
		}),
	}
}

// terminalOf returns standard input and output, if both are terminals.
func terminalOf(prog *cmdline.Program) (in, out *os.File, ok bool) {
	in, inOK := prog.Env.Stdin.(*os.File)
	out, outOK := prog.Env.Stdout.(*os.File)
	return in, out, inOK && outOK && cmdline.IsTerminal(in) && cmdline.IsTerminal(out)
}

// keptChats is how long the state folder keeps conversations that have ended.
const keptChats = 30 * 24 * time.Hour

// chat is one conversation in a terminal.
type chat struct {
	prog     *cmdline.Program
	manager  *control.Manager
	handle   control.SessionHandle
	session  *session.Session
	keys     *keys
	screen   *cmdline.Screen
	terminal rawTerminal
	requests chan chatRequest
	inTurn   atomic.Bool // reads requests
}

// chatRequest is an approval request and how to answer it.
type chatRequest struct {
	approval session.Approval
	over     <-chan struct{}
	answer   chan<- session.Decision
}

// talk holds a conversation until the user or the agent ends it.
func talk(ctx context.Context, prog *cmdline.Program, opts control.StartOptions, resume string, in, out *os.File) error {
	c := &chat{prog: prog, requests: make(chan chatRequest)}
	c.screen = cmdline.NewScreen(cmdline.ToTerminal(crlf{out}, true))
	store, err := openStore(prog)
	if err != nil {
		return err
	}
	runtime := opts.Runtime
	var printer *logPrinter
	options := session.Options{
		Started: func(start agent.Start) {
			run.Announce(prog, start)
			runtime = start.Runtime
		},
		Approve: c.approve,
		Events: func(e *agent.Event) error {
			defer c.terminal.restoreInPanic()
			if printer == nil {
				printer = newLogPrinter(prog, c.screen, control.Entry{Settings: control.Settings{Runtime: runtime}})
			}
			if e.ApprovalID != "" {
				return nil
			}
			return printer.print(&control.LogRecord{Event: e})
		},
	}
	c.manager = newManager(ctx, prog, opts.Settings, c.warn)
	c.manager.Store, c.manager.Serve = store, true
	if resume == "" {
		c.handle, err = c.manager.StartWith(ctx, opts, options)
	} else {
		c.handle, err = c.manager.ResumeWith(ctx, control.SessionHandle{SessionID: resume}, control.ResumeOptions{Settings: opts.Settings, Env: opts.Env}, options)
	}
	if err == nil {
		c.session, err = c.manager.Session(c.handle)
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.manager.Stop(context.WithoutCancel(ctx), c.handle, "the conversation has ended") }() // it may have ended
	_, _ = store.Prune(ctx, time.Now().Add(-keptChats))                                                       // the next conversation retries
	if err := c.terminal.begin(in); err != nil {
		return &cmdline.Failure{Text: "cannot use the terminal", Err: err}
	}
	defer c.terminal.restore() // also in a panic
	c.keys = newKeys(in, ctx.Done(), c.session.Done())
	defer context.AfterFunc(ctx, c.terminal.restore)() // at once, because a signal may end the program
	err = c.talk(ctx, out)
	c.terminal.restore()
	if id := c.session.Info().SessionID; id != "" && err == nil {
		prog.Screen.Info(fmt.Sprintf("%s chat --agent %s --resume %s continues it", cmdline.Name, runtime, cmdline.ShellWord(id)))
	}
	return err
}

// warn shows a warning.
func (c *chat) warn(line string) {
	if c.terminal.raw() && !c.prog.Global.Quiet {
		c.screen.Warn(line)
	} else {
		c.prog.Screen.Warn(line)
	}
}

// talk reads lines and sends them.
func (c *chat) talk(ctx context.Context, out *os.File) error {
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.keys, out}, "> ")
	if width, height := cmdline.TerminalSize(out); width > 0 {
		_ = terminal.SetSize(width, height) // the default does
	}
	for {
		c.screen.EndLine()
		line, err := terminal.ReadLine()
		switch {
		case ctx.Err() != nil:
			return cmdline.StoppedBy(ctx)
		case c.keys.ended():
			return &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("the agent has ended")}
		case err != nil && err != term.ErrPasteIndicator:
			return nil
		case c.keys.interrupted:
			c.screen.Line("press Ctrl-C again, or Ctrl-D, to end the conversation")
			continue
		case strings.TrimSpace(line) == "":
			continue
		}
		if next, err := c.turn(ctx, line); !next {
			return err
		}
	}
}

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
		if t.open.answer != nil {
			requests = nil
		}
		select {
		case <-ctx.Done():
			return false, cmdline.StoppedBy(ctx)
		case <-turn.Done():
			if _, err := turn.Wait(ctx); err != nil && !t.interrupted {
				c.screen.Line(c.prog.Describe(err))
			}
			return true, nil
		case t.open = <-requests:
			c.ask(t.open.approval)
			t.drawn = c.keys.draw() // before the prompt, so that an answer to the prompt counts
			c.prompt()
		case <-t.open.over:
			t.close()
		case <-c.keys.more:
		}
	}
}

// chatTurn is a turn that runs, and how far the user has answered its request.
type chatTurn struct {
	interrupted bool
	open        chatRequest // its answer is nil while none is open
	drawn       int         // see keys.draw
	line        []byte      // typed to answer
	cut         bool        // line was begun for a request that is over
}

// close records that no request is open.
func (t *chatTurn) close() {
	t.cut = t.cut || len(t.line) > 0
	t.open, t.line = chatRequest{}, nil
}

// takeKeys handles what was typed, and reports whether the conversation continues.
//
// The first whole line that was begun after a request was drawn answers it. Everything
// typed before, and the rest of a line begun then, is kept for the next message.
func (c *chat) takeKeys(ctx context.Context, t *chatTurn) bool {
	for {
		press, ok, ended := c.keys.next()
		asked := t.open.answer != nil && press.drawn >= t.drawn
		switch key := press.key; {
		case !ok:
			return !ended
		case asked && key == ctrlC:
			c.answer(t, session.Cancel)
		case asked && t.cut:
			if t.cut = !isEnter(key); !t.cut {
				c.prompt()
			}
		case asked && c.keys.inLine():
			if c.keys.later(key); isEnter(key) {
				c.screen.Line("the line you had begun is kept for the next message")
				c.prompt()
			}
		case asked && isEnter(key):
			if d := decisionFor(string(t.line)); d != "" {
				c.answer(t, d)
			} else {
				t.line = nil
				c.prompt()
			}
		case asked:
			c.edit(t, key)
		case key != ctrlC:
			c.keys.later(key)
		case t.interrupted:
			return false
		default:
			t.interrupted = true
			c.screen.Line("^C")
			go c.session.Interrupt(ctx) // the turn reports the outcome
		}
	}
}

// edit changes the answer that is typed.
func (c *chat) edit(t *chatTurn, key byte) {
	switch {
	case key == ctrlU:
		t.line = nil
		c.prompt()
	case key == backspace || key == del:
		if len(t.line) > 0 {
			t.line = t.line[:len(t.line)-1]
			io.WriteString(c.screen, "\n")
			c.prompt()
			c.screen.Write(t.line)
		}
	case key >= ' ' && key < del:
		t.line = append(t.line, key)
		c.screen.Write([]byte{key})
	default: // never part of an answer
		t.line = append(t.line, '?')
	}
}

func (c *chat) answer(t *chatTurn, d session.Decision) {
	c.screen.Line(string(d)) // before what the agent says to it
	t.open.answer <- d
	t.open, t.line = chatRequest{}, nil
}

func (c *chat) ask(a session.Approval) {
	c.screen.Line("[approval request] " + cmdline.OneWord(requestText(a)))
}

// prompt shows the possible answers on a separate line.
func (c *chat) prompt() {
	c.screen.EndLine()
	io.WriteString(c.screen, "allow it? [y]es, [a]lways here, [n]o, [c]ancel the turn, then Enter: ")
}

// decisionFor returns the decision that a typed line stands for, "" for none.
func decisionFor(line string) session.Decision {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return session.Accept
	case "a", "always":
		return session.AcceptForSession
	case "n", "no":
		return session.Decline
	case "c", "cancel":
		return session.Cancel
	}
	return ""
}

// approve is the callback of the session.
func (c *chat) approve(ctx context.Context, a session.Approval) session.Decision {
	defer c.terminal.restoreInPanic()
	if !c.inTurn.Load() { // another process has sent the message
		c.screen.Line("[approval request] " + cmdline.OneWord(requestText(a)) + "; answer it with \"session approve\"")
		return ""
	}
	answer := make(chan session.Decision, 1)
	select {
	case c.requests <- chatRequest{a, ctx.Done(), answer}:
	case <-ctx.Done():
		return ""
	}
	select {
	case d := <-answer:
		return d
	case <-ctx.Done():
		return ""
	}
}
