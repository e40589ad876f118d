package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runs"

	runsreport "github.com/busdk/bus-agent/runs/report"
)

func runsReportCommand(prog *cmdline.Program) *urfave.Command {
	o := &runFilter{}
	var to string
	var force bool
	return &urfave.Command{
		Name:  "report",
		Usage: "write runs as one HTML page",
		Description: fmt.Sprintf(`Writes a page about the runs that the flags choose, or about all: when they ran and
how they ended, what failed and why, tokens, cost and durations, and the conversations.
It is one file that needs no network. It holds the newest %d runs and %d MB of their
conversations, the newest too, and names a command for the others.

With --to the file is readable by you alone: it holds what the agents read and said.
Without it the page goes to standard output, but not to a terminal.`, runsreport.DefaultRuns, runsreport.DefaultConversations/1_000_000),
		Flags: append([]urfave.Flag{
			cmdline.Option("to", "write to `FILE`, such as runs.html", &to).Of(cmdline.Files),
			cmdline.Toggle("force", "replace the file if it exists", &force),
		}, o.flags(prog)...),
		UsageText: cmdline.UsageText(`# all that is recorded
bus-agent runs report --to runs.html
# what failed this week
bus-agent runs report --status failed --since 7d --to failed.html --force`,
			"the page was written", "it could not be written, or the file exists; nothing is left of a part"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			filter, err := o.filter(time.Now())
			switch {
			case err != nil:
				return err
			case to != "" && prog.Global.Output != "":
				return agent.Usagef("the page is to be written twice, by --to and --output")
			case force && to == "":
				return agent.Usagef("--force is about the file of --to, which is not given")
			case to == "" && prog.Global.Output == "" && !prog.Global.Quiet && cmdline.IsTerminalWriter(prog.Env.Stdout):
				return agent.Usagef("standard output is a terminal, which shows no HTML; use --to FILE")
			}
			return reportRuns(prog, ctx, o, filter, to, force)
		}),
	}
}

func reportRuns(prog *cmdline.Program, ctx context.Context, o *runFilter, filter runs.Filter, to string, force bool) error {
	path := prog.Env.Abs(to)
	if _, err := os.Lstat(path); to != "" && err == nil && !force {
		return errors.New(cmdline.Quote(path) + " exists; choose another name, or --force to replace it")
	}
	store, err := runsStore(prog, o.root)
	if err != nil {
		return err
	}
	list, err := choose(prog, ctx, store, filter)
	if err != nil {
		return err
	}
	options := runsreport.Options{
		Now: time.Now(), Root: store.Root, Filter: cmdline.ShellLine(o.words()),
		Events: func(run *runs.Run) iter.Seq2[runs.Event, error] { return entriesOf(prog, ctx, run) },
		Command: func(run *runs.Run) string {
			words := []string{cmdline.Name, "runs", "events", "--text"}
			if o.root != "" {
				words = append(words, "--runs-root", store.Root)
			}
			return cmdline.ShellLine(append(words, filepath.Base(run.Dir)))
		},
	}
	if to == "" {
		if err := runsreport.Write(prog.Out, list, options); err != nil {
			return cmdline.CanceledBy(ctx, err)
		}
		return cmdline.CanceledBy(ctx, ctx.Err())
	}
	err = writePrivate(path, force, func(w io.Writer) error {
		if err := runsreport.Write(w, list, options); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return cmdline.CanceledBy(ctx, cmdline.OutputError(cmdline.Quote(path), err))
	}
	prog.Screen.Info(cmdline.Count(len(list), "run is", "runs are") + " in " + cmdline.Printable(path))
	return nil
}

// words returns the flags that choose runs as they were given.
func (f *runFilter) words() (words []string) {
	for _, flag := range []struct {
		name, value string
	}{
		{"project", f.project}, {"task", f.task}, {"status", f.status}, {"runtime", f.runtime},
		{"parent-run", f.parent}, {"since", f.since}, {"older-than", f.olderThan},
	} {
		if flag.value != "" {
			words = append(words, "--"+flag.name, flag.value)
		}
	}
	return words
}

// writePrivate writes a file that the user alone can read, whole or not at all, in
// place of none unless forced. Its folder is held meanwhile; a link in the place of
// the file is replaced, not followed.
func writePrivate(path string, force bool, write func(io.Writer) error) error {
	dir, err := statefile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	f, temporary, err := dir.CreateTemp(".bus-agent")
	if err != nil {
		return err
	}
	defer dir.Remove(temporary)
	err = write(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if force {
		return dir.Rename(temporary, name)
	}
	if err = dir.Link(temporary, name); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// Not every file system has links.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return dir.Rename(temporary, name)
}

// entriesOf reads the conversation of a run: its events or, where another program
// wrote the record, its prompt and what the agent's output says. It ends with ctx.
func entriesOf(prog *cmdline.Program, ctx context.Context, run *runs.Run) iter.Seq2[runs.Event, error] {
	return func(yield func(runs.Event, error) bool) {
		y := &yielder{ctx: ctx, yield: yield}
		err := yieldEntries(prog, run, y)
		if err != nil && !y.stopped {
			yield(runs.Event{}, err)
		}
	}
}

func yieldEntries(prog *cmdline.Program, run *runs.Run, y *yielder) error {
	file, err := run.Open(runs.FileEvents)
	if err == nil {
		defer file.Close()
		return runs.ReadEvents(file, y.entry)
	}
	if !errors.Is(err, fs.ErrNotExist) || run.EventsPath != "" {
		return cmdline.Cause(err)
	}
	if prompt, err := run.Open(runs.FilePrompt); err == nil {
		text, _ := io.ReadAll(io.LimitReader(prompt, 1<<20)) // as much as there is
		prompt.Close()
		if err := y.Event(&agent.Event{Kind: runs.KindMessage, Text: string(text)}); err != nil {
			return err
		}
	}
	if file, err = run.Open(runs.FileStdout); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return cmdline.Cause(err)
	}
	defer file.Close()
	return decode(prog, run, file, y)
}

// yielder hands on what a conversation printer gets.
type yielder struct {
	ctx     context.Context
	yield   func(runs.Event, error) bool
	stopped bool // nothing more may be handed on
}

func (y *yielder) entry(e *runs.Event) error {
	if y.stopped = y.stopped || y.ctx.Err() != nil || !y.yield(*e, nil); y.stopped {
		return errStopped
	}
	return nil
}

func (y *yielder) Event(e *agent.Event) error { return y.entry(&runs.Event{Event: *e}) }

func (y *yielder) end() error { return nil }

var errStopped = errors.New("nobody wants more")
