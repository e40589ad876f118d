package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

func messagesCommand(prog *cmdline.Program) *urfave.Command {
	var root, text, kind string
	return &urfave.Command{
		Name:      "messages",
		Usage:     "print the messages of a task, or post one",
		ArgsUsage: "[TASK]",
		Description: `Prints the messages of a task: when its runs began and ended, and what programs and
agents posted. With --post, it posts a message instead.

Name a task by its ID, by PROJECT/TASK or by one of its runs. In a recorded run, the
default is the task of the run, and a message names the run.`,
		Flags: []urfave.Flag{
			cmdline.String("post", "post `TEXT` as a message", &text),
			cmdline.String("type", "print only messages of `TYPE`, or post one of it (default: INFO)", &kind),
			run.RootFlag(&root),
		},
		UsageText: cmdline.UsageText(`# what happened in the task of the latest run?
bus-agent runs messages latest
# tell the other runs of its task
bus-agent runs messages latest --type FACT --post "The tests need Go 1.26"`,
			"the messages were printed, or the message was posted", "the messages cannot be read or written"),
		BashComplete: completes(prog, &root, false),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, call cmdline.Call) error {
			if call.IsSet("post") && prog.Global.JSON() {
				return cmdline.Misusef("--post prints nothing; leave out --format json")
			}
			records, err := openRecords(prog, root)
			if err != nil {
				return err
			}
			outerRoot, outer, inside := runs.Outer(prog.Env.Environ)
			inside = inside && outerRoot == records.Root
			handle := outer.Project + "/" + outer.Task
			switch {
			case len(call.Args) > 0:
				handle = call.Args[0]
			case !inside:
				return cmdline.Misusef("runs messages needs a TASK outside a recorded run")
			}
			task, err := records.FindTask(ctx, handle)
			if err != nil {
				return cmdline.CanceledBy(ctx, err)
			}
			if !call.IsSet("post") {
				return printMessages(prog, &task, kind)
			}
			m := runs.Message{Type: kind, Body: runner.Mask(prog.Env.Environ, text)}
			if m.Type == "" {
				m.Type = "INFO"
			}
			if inside && task.Project == outer.Project && task.ID == outer.Task {
				m.Run = outer.Parent
			}
			return task.Post(ctx, m)
		}),
	}
}

// printMessages prints the messages of a task, or those of one type.
func printMessages(prog *cmdline.Program, task *runs.Task, kind string) error {
	list, err := task.Messages()
	if err != nil {
		return &cmdline.Failure{Text: "cannot read the messages of task " + cmdline.OneWord(task.ID), Err: cmdline.Cause(err)}
	}
	if kind != "" {
		list = slices.DeleteFunc(list, func(m runs.Message) bool { return m.Type != kind })
	}
	var b strings.Builder
	for _, m := range list {
		b.WriteString(strings.TrimRight(m.Time.Local().Format(time.DateTime)+"  "+cmdline.OneWord(m.Type)+"  "+cmdline.OneWord(m.Run), " ") + "\n")
		for line := range strings.Lines(formatters.SanitizeString(m.Body)) {
			b.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if list == nil {
		list = []runs.Message{}
	}
	return prog.Out.Report(list, b.String())
}
