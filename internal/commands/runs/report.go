package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"

	"github.com/busdk/bus-agent/runs/report"
)

func reportCommand(prog *cmdline.Program) *urfave.Command {
	s, to := &selection{}, &destination{}
	conversations := report.DefaultConversations / megabyte
	return &urfave.Command{
		Name:  "report",
		Usage: "write runs as one HTML page",
		Description: fmt.Sprintf(`Writes a page about the runs that the flags select, or about all runs: when they ran,
how they ended, what failed and why, tokens, cost, durations and conversations. The page
is one file and needs no network. It holds the newest %d runs and the newest %d MB of
their conversations. For the others, it shows the command that prints them.

Without --to, the page is written to standard output, which must not be a terminal. Only
you can read the file of --to, because it holds what the agents read and said.`, report.DefaultRuns, report.DefaultConversations/megabyte),
		Flags: append(append(to.flags("write to `FILE`, such as runs.html"),
			cmdline.Number("conversations", "include the newest `N` MB of conversations; 0 for none (default: 3)", 0, &conversations)), s.flags(prog)...),
		UsageText: cmdline.UsageText(`# all recorded runs
bus-agent runs report --to runs.html
# what failed this week
bus-agent runs report --status failed --since 7d --to failed.html --force`,
			"the page was written", "the file exists or could not be written; no partial file is left"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			g := &prog.Global
			switch {
			case to.file != "" && g.Output != "":
				return cmdline.Misusef("--to and --output both name a file for the page; leave one out")
			case to.force && to.file == "":
				return cmdline.Misusef("--force needs --to")
			case to.file == "" && g.Output == "" && !g.Quiet && cmdline.IsTerminalWriter(prog.Env.Stdout):
				return cmdline.Misusef("standard output is a terminal, which cannot show HTML; use --to FILE")
			}
			return writeReport(ctx, prog, s, to, conversations)
		}),
	}
}

const megabyte = 1_000_000

func writeReport(ctx context.Context, prog *cmdline.Program, s *selection, to *destination, conversations int) error {
	if to.file != "" {
		if _, err := to.path(prog); err != nil {
			return err
		}
	}
	records, err := openRecords(prog, s.root)
	if err != nil {
		return err
	}
	list, err := choose(ctx, prog, records, s.Filter)
	if err != nil {
		return err
	}
	options := report.Options{
		Now: time.Now(), Root: records.Root, Filter: cmdline.ShellLine(s.words),
		MaxConversations: cmp.Or(min(conversations, math.MaxInt/megabyte)*megabyte, -1),
		Events:           func(run *runs.Run) iter.Seq2[runs.Event, error] { return entriesOf(ctx, prog, run) },
		Open:             (*runs.Run).Open,
		Messages: func(run *runs.Run) ([]runs.Message, error) {
			messages, err := run.Messages()
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			return messages, cmdline.Cause(err)
		},
		Command: func(run *runs.Run) string {
			words := []string{cmdline.Name, "runs", "events", "--text"}
			if s.root != "" {
				words = append(words, "--runs-root", records.Root)
			}
			return cmdline.ShellLine(append(words, filepath.Base(run.Dir)))
		},
	}
	write := func(w io.Writer) error {
		if err := report.Write(w, list, options); err != nil {
			return err
		}
		return ctx.Err()
	}
	if to.file != "" {
		return to.write(ctx, prog, len(list), write)
	}
	return cmdline.CanceledBy(ctx, write(prog.Out))
}

// entriesOf returns the conversation of a run: its events or, if another program wrote the
// record, its prompt and the events in the agent's output. It ends with ctx.
func entriesOf(ctx context.Context, prog *cmdline.Program, run *runs.Run) iter.Seq2[runs.Event, error] {
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
		return run.ReadEvents(file, decoderOf(prog, run), y.entry)
	}
	if !errors.Is(err, fs.ErrNotExist) || run.EventsPath != "" {
		return cmdline.Cause(err)
	}
	if prompt, err := run.Open(runs.FilePrompt); err == nil {
		text, _ := io.ReadAll(io.LimitReader(prompt, 1<<20)) // an error leaves a shorter text
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

// yielder is a conversationPrinter that yields.
type yielder struct {
	ctx     context.Context
	yield   func(runs.Event, error) bool
	stopped bool // nothing more may be yielded
}

func (y *yielder) entry(e *runs.Event) error {
	if y.stopped = y.stopped || y.ctx.Err() != nil || !y.yield(*e, nil); y.stopped {
		return errStopped
	}
	return nil
}

func (y *yielder) Event(e *agent.Event) error { return y.entry(&runs.Event{Event: *e}) }

func (y *yielder) end() error { return nil }

var errStopped = errors.New("stopped")
