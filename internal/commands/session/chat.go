package session

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func ChatCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	var flags []urfave.Flag
	for _, f := range o.flags(prog) {
		if !slices.Contains([]string{"prompt", "name", "idle"}, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return &urfave.Command{
		Name:      "chat",
		Usage:     "talk with an agent in this terminal",
		ArgsUsage: "[-- ARGS]",
		Description: `Starts an agent and holds a conversation with it: what you type is said when you
press Enter, and what the agent says and does is shown as it happens. When it asks
for permission, y and Enter allows, a allows for the whole conversation, n declines and
c ends the turn; what you typed before the question was shown does not answer it.
Ctrl-C ends the running turn, and twice the conversation, as does Ctrl-D. Ctrl-Z stops
bus-agent as in a shell; the agent keeps running.`,
		Flags: append(flags, cmdline.Option("resume", "continue the session `ID` of the runtime", &o.Resume)),
		UsageText: cmdline.UsageText(`# talk with one
bus-agent chat --agent RUNTIME`,
			"the conversation was ended", "the agent did not start, or ended by itself"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			in, inOK := prog.Env.Stdin.(*os.File)
			out, outOK := prog.Env.Stdout.(*os.File)
			if !inOK || !outOK || !cmdline.IsTerminal(in) || !cmdline.IsTerminal(out) {
				return agent.Usagef("chat needs a terminal as standard input and output; \"run\" and \"session\" do without")
			}
			opts, err := sessionOptions(prog, ctx, o, call.Rest)
			if err != nil {
				return err
			}
			return talk(prog, ctx, opts, o.Resume, in, out)
		}),
	}
}

// keptChats is how long the state folder remembers conversations that have ended.
const keptChats = 30 * 24 * time.Hour

// chat is one conversation in a terminal.
type chat struct {
	prog      *cmdline.Program
	manager   *control.Manager
	handle    control.SessionHandle
	session   *session.Session
	keys      *keys
	screen    *cmdline.Screen
	terminal  rawTerminal
	questions chan chatQuestion
}

// chatQuestion is a question for permission and how it is answered.
type chatQuestion struct {
	approval session.Approval
	over     <-chan struct{}
	answer   chan<- session.Decision
}

// chat holds a conversation until the user or the agent ends it.
func talk(prog *cmdline.Program, ctx context.Context, opts control.StartOptions, resume string, in, out *os.File) error {
	c := &chat{prog: prog, questions: make(chan chatQuestion)}
	c.screen = cmdline.NewScreen(cmdline.ToTerminal(crlf{out}, true))
	store, err := sessionStore(prog)
	if err != nil {
		return err
	}
	runtime := opts.Runtime
	var printer *recordPrinter
	opts.Session = session.Options{
		Started: func(start agent.Start) {
			v := &run.View{Prog: prog, Runtime: start.Runtime, Model: start.Model}
			v.Announce()
			runtime = start.Runtime
		},
		Approve: c.approve,
		Events: func(e *agent.Event) error {
			defer c.terminal.restoreInPanic()
			if printer == nil {
				printer = newRecordPrinter(prog, c.screen, control.Entry{Settings: control.Settings{Runtime: runtime}})
			}
			if e.ApprovalID != "" {
				return nil
			}
			return printer.print(&control.Record{Event: e})
		},
	}
	c.manager = newManager(prog, ctx, opts.Settings, c.warn)
	c.manager.Store = store
	if resume == "" {
		c.handle, err = c.manager.Start(ctx, opts)
	} else {
		c.handle, err = c.manager.ResumeWith(ctx, control.SessionHandle{SessionID: resume, Runtime: opts.Runtime, WorkDir: opts.WorkDir}, opts)
	}
	if err == nil {
		c.session, err = c.manager.Session(c.handle)
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.manager.Stop(context.WithoutCancel(ctx), c.handle, "the conversation has ended") }() // or it has ended
	_, _ = store.Prune(ctx, time.Now().Add(-keptChats))                                                       // or the next one does
	if err := c.terminal.begin(in); err != nil {
		return &cmdline.Failure{Text: "the terminal cannot be used", Err: err}
	}
	defer c.terminal.restore() // also in a panic
	c.keys = newKeys(in, ctx.Done(), c.session.Done())
	defer context.AfterFunc(ctx, c.terminal.restore)() // at once: after a signal the program may not get further
	err = c.talk(ctx, out)
	c.terminal.restore()
	if id := c.session.Info().SessionID; id != "" && err == nil {
		prog.Screen.Info(fmt.Sprintf("%s chat --agent %s --resume %s continues it", cmdline.Name, runtime, cmdline.ShellWord(id)))
	}
	return err
}

// warn says what went another way than asked for.
func (c *chat) warn(line string) {
	if c.terminal.raw() && !c.prog.Global.Quiet {
		c.screen.Warn(line)
	} else {
		c.prog.Screen.Warn(line)
	}
}

// talk takes lines and has them answered.
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
		if goOn, err := c.turn(ctx, line); !goOn {
			return err
		}
	}
}

// turn says something and shows what comes of it. It reports whether the
// conversation continues.
func (c *chat) turn(ctx context.Context, text string) (bool, error) {
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
		questions := c.questions
		if t.open.answer != nil {
			questions = nil
		}
		select {
		case <-ctx.Done():
			return false, cmdline.StoppedBy(ctx)
		case <-turn.Done():
			if _, err := turn.Wait(ctx); err != nil && !t.interrupted {
				c.screen.Line(c.prog.Describe(err))
			}
			return true, nil
		case t.open = <-questions:
			c.ask(t.open.approval)
			t.drawn = c.keys.draw() // before the prompt, so that an answer to it counts
			c.prompt()
		case <-t.open.over:
			t.close()
		case <-c.keys.more:
		}
	}
}

// chatTurn is a turn that runs, and how far the user has answered its question.
type chatTurn struct {
	interrupted bool
	open        chatQuestion // its answer is nil while none is open
	drawn       int          // see keys.draw
	line        []byte       // typed to answer
	cut         bool         // line began at a question that is over
}

// close takes note that no question is open.
func (t *chatTurn) close() {
	t.cut = t.cut || len(t.line) > 0
	t.open, t.line = chatQuestion{}, nil
}

// takeKeys acts on what was typed. It reports whether the conversation continues.
//
// A question is answered by the first whole line that was begun after it was drawn.
// All that was typed before, and the rest of a line begun then, was not meant for it
// and is kept for the next message.
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
			go c.session.Interrupt(ctx) // the turn tells what came of it
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
	default: // not a letter of an answer
		t.line = append(t.line, '?')
	}
}

func (c *chat) answer(t *chatTurn, d session.Decision) {
	t.open.answer <- d
	c.screen.Line(string(d))
	t.open, t.line = chatQuestion{}, nil
}

func (c *chat) ask(a session.Approval) {
	what := "?"
	if a.Tool != nil {
		what = a.Tool.Name + " " + cmdline.WholeInput(a.Tool)
	}
	if a.Reason != "" {
		what += " (" + a.Reason + ")"
	}
	c.screen.Line("[question] " + cmdline.OneWord(what))
}

// prompt says on a separate line what can be answered.
func (c *chat) prompt() {
	c.screen.EndLine()
	io.WriteString(c.screen, "allow it? [y]es, [a]lways here, [n]o, [c]ancel the turn, then Enter: ")
}

// decisionFor returns the decision that a typed line is, "" for none.
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
	answer := make(chan session.Decision, 1)
	select {
	case c.questions <- chatQuestion{a, ctx.Done(), answer}:
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
