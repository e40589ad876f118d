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
n to decline or c to end the turn, then Enter. To answer a question of the agent, type the
number of an option or your answer, then Enter; /decline refuses to answer. Text typed
before the request was shown does not answer it.

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
			if o.Resume != "" && o.policyFile == "" {
				store, err := openStore(prog)
				if err != nil {
					return err
				}
				if _, err := store.Get(o.Resume); err == nil {
					opts.Policy = nil // the session keeps its own
				}
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
	requests chan *chatRequest
	inTurn   atomic.Bool // reads requests
}

// talk holds a conversation until the user or the agent ends it.
func talk(ctx context.Context, prog *cmdline.Program, opts control.StartOptions, resume string, in, out *os.File) error {
	c := &chat{prog: prog, requests: make(chan *chatRequest)}
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
		Ask:     c.consult,
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
