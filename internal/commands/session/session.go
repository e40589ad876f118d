// Package session has the commands for background sessions and for chats.
package session

import (
	"context"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session/control"
)

// Command is "session".
func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "session",
		Usage: "manage background sessions",
		Description: `A session is a conversation of many turns with one agent. It runs in the background
after the command that started it has ended. A small process holds each session and
ends with it.

Name a session by its name, its ID, or the beginning of its ID.`,
		Subcommands: []*urfave.Command{
			startCommand(prog),
			sendCommand(prog),
			watchCommand(prog),
			attachCommand(prog),
			approveCommand(prog),
			answerCommand(prog),
			steerCommand(prog),
			interruptCommand(prog),
			listCommand(prog),
			showCommand(prog),
			stopCommand(prog),
			resumeCommand(prog),
		},
		UsageText: cmdline.UsageText(`# start a session
bus-agent session start --agent RUNTIME --name tour
# talk with its agent
bus-agent session send tour "What is this?"
# end it
bus-agent session stop tour`,
			"the command succeeded"),
		Action: prog.Group,
	}
}

// openStore returns the state folder of sessions.
func openStore(prog *cmdline.Program) (*control.Store, error) {
	dir, err := control.DefaultDir(prog.Env.Environ)
	return control.NewStore(dir), err
}

// newClient returns the client of the sessions that run in the background.
func newClient(prog *cmdline.Program) (*control.Client, error) {
	store, err := openStore(prog)
	host := control.Program{Path: prog.Env.Executable, Args: []string{cmdline.Name, ServeName}, Environ: prog.Env.Environ}
	return &control.Client{Store: store, Host: host, Report: showReport(prog)}, err
}

// target is the session that a command is about.
type target struct {
	*control.Client
	entry control.Entry
	args  []string // after the session
}

// action returns the action of a command whose first argument is a session.
func action(prog *cmdline.Program, traits cmdline.Traits, do func(context.Context, target) error) urfave.ActionFunc {
	return prog.Action(traits, func(ctx context.Context, call cmdline.Call) error {
		client, err := newClient(prog)
		if err != nil {
			return err
		}
		reportCrashes(ctx, prog, client)
		entry, err := client.Find(call.Args[0])
		if err != nil {
			return err
		}
		return cmdline.CanceledBy(ctx, do(ctx, target{client, entry, call.Args[1:]}))
	})
}

// reportCrashes notifies the hooks of sessions whose process was killed.
func reportCrashes(ctx context.Context, prog *cmdline.Program, client *control.Client) {
	sinks, err := control.StoredSinks(ctx, prog.Stored.Preferences)
	if err != nil {
		prog.Screen.Warn(cmdline.OneWord(err.Error()))
	}
	client.ReportCrashes(ctx, prog.Env.Environ, sinks, func(line string) { prog.Screen.Warn(cmdline.OneWord(line)) })
}

// completes completes the first argument with the sessions that are wanted, and the
// next ones with then.
func completes(prog *cmdline.Program, wanted func(control.Entry) bool, then ...string) urfave.BashCompleteFunc {
	return cmdline.Completes(func(done []string) (labels []string) {
		if len(done) > 0 {
			return then
		}
		store, err := openStore(prog)
		if err != nil {
			return nil
		}
		list, _, _ := store.List(control.Filter{}) // errors are not shown while a user types
		for _, e := range list {
			if wanted(e) {
				labels = append(labels, e.Label()+"\t"+cmdline.Printable(e.Runtime+" in "+e.Workdir))
			}
		}
		return labels
	})
}

func ended(e control.Entry) bool { return e.State.Ended() }

func always(control.Entry) bool { return true }

func promptFlag(file *string) *cmdline.Flag {
	return cmdline.File("prompt", "read the message from `FILE`, - for standard input", file)
}

// readMessage returns the message to an agent, from an argument or the file of --prompt;
// "" for neither.
func readMessage(ctx context.Context, prog *cmdline.Program, args []string, file string) (text string, err error) {
	switch {
	case len(args) > 0 && file != "":
		return "", cmdline.Misusef("the message is given twice, as an argument and with --prompt")
	case len(args) > 0:
		text = args[0]
	case file != "":
		text, err = prog.ReadInput(ctx, "--prompt", file)
	default:
		return "", nil
	}
	if err == nil && strings.TrimSpace(text) == "" {
		err = cmdline.Misusef("the message is empty")
	}
	return text, err
}

// needMessage is readMessage for commands that need a message, which can have the files
// of --attach.
func needMessage(ctx context.Context, prog *cmdline.Program, args []string, file string, attach []string) (control.Message, error) {
	text, err := readMessage(ctx, prog, args, file)
	if err == nil && text == "" {
		err = cmdline.Misusef("there is no message; give it as an argument or with --prompt FILE")
	}
	m := control.Message{Text: text}
	if err == nil {
		m.Attachments, err = prog.ReadAttachments(attach)
	}
	return m, err
}

// readFirst is readMessage for commands that need no message, unless --attach is given.
func readFirst(ctx context.Context, prog *cmdline.Program, args []string, file string, attach []string) (control.Message, error) {
	if len(attach) > 0 {
		return needMessage(ctx, prog, args, file, attach)
	}
	text, err := readMessage(ctx, prog, args, file)
	return control.Message{Text: text}, err
}
