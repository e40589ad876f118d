package runs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/runs"
)

func runsOutputCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	return &urfave.Command{
		Name:      "output",
		Usage:     "print the answer of a run",
		ArgsUsage: "RUN",
		Description: `Prints output.md of a run, ended by one line break, as "run" prints an answer:
without what a terminal acts on. A run has none while it goes on, unless the agent
writes it itself.`,
		Flags: []urfave.Flag{run.RecordsFlag(&root)},
		UsageText: cmdline.UsageText(`# the last answer
bus-agent runs output latest
# hand it to another agent
bus-agent runs output latest | bus-agent run --prompt -`,
			"it was printed", "there is no answer"),
		BashComplete: cmdline.Completes(runWords(prog, &root, false)),
		Action: prog.Action(0, func(ctx context.Context, call cmdline.Call) error {
			_, run, err := findRun(prog, ctx, root, call.Args[0])
			if err != nil {
				return err
			}
			return printAnswer(prog, run)
		}),
	}
}

func printAnswer(prog *cmdline.Program, run *runs.Run) error {
	f, err := run.Open(runs.FileOutput)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it is " + cmdline.OneWord(string(run.Status)))
	}
	if err != nil {
		return &cmdline.Failure{Text: "the run " + handleOf(run) + " has no answer", Err: cmdline.Cause(err)}
	}
	defer f.Close()
	return sanitizeLines(prog.Out, f)
}

// sanitizeLines copies text without what a terminal acts on, and ends its last
// line. It holds no more than some lines of it. A line over [formatters.MaxLine] is
// cut there and goes on on the next one, with a note between.
func sanitizeLines(to io.Writer, from io.Reader) error {
	const enough = 1 << 20
	const cut = "\n[the line goes on]\n"
	lines := bufio.NewReaderSize(from, 64<<10)
	var text, safe []byte
	length := 0 // of the line
	for {
		part, err := lines.ReadSlice('\n')
		text = append(text, part...)
		if length += len(part); err == nil {
			length = 0
		} else if length >= formatters.MaxLine && errors.Is(err, bufio.ErrBufferFull) {
			text = append(text, cut...)
			length, err = 0, nil
		}
		ended := err != nil && !errors.Is(err, bufio.ErrBufferFull)
		if ended && len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		if len(text) > 0 && (ended || err == nil && len(text) >= enough) {
			safe = formatters.Sanitize(safe[:0], text)
			if _, err := to.Write(safe); err != nil {
				return err
			}
			text = text[:0]
		}
		if ended {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}
