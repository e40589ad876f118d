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

func outputCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	return &urfave.Command{
		Name:      "output",
		Usage:     "print the answer of a run",
		ArgsUsage: "RUN",
		Description: `Prints the answer of a run, which is output.md in its record. As with "run", control
characters are left out and the text ends with one line break. A run that has not ended
has an answer only if the agent wrote output.md itself.`,
		Flags: []urfave.Flag{run.RootFlag(&root)},
		UsageText: cmdline.UsageText(`# the last answer
bus-agent runs output latest
# pass it on to another agent
bus-agent runs output latest | bus-agent run --prompt -`,
			"the answer was printed", "there is no answer"),
		BashComplete: completes(prog, &root, false),
		Action: action(prog, 0, &root, func(_ context.Context, t target) error {
			f, err := t.Open(runs.FileOutput)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				err = errors.New("it is " + cmdline.OneWord(string(t.Status)))
			case err == nil:
				defer f.Close()
				if sizeOf(f) == 0 {
					err = errors.New(runs.FileOutput + " is empty")
				}
			}
			if err != nil {
				return &cmdline.Failure{Text: "the run " + idOf(t.Run) + " has no answer", Err: cmdline.Cause(err)}
			}
			return sanitizeLines(prog.Out, f)
		}),
	}
}

// sanitizeLines copies text without control characters and ends its last line. It holds
// only some lines at a time. Lines over [formatters.MaxLine] are split, with a note
// between.
func sanitizeLines(to io.Writer, from io.Reader) error {
	const enough = 1 << 20
	const cut = "\n[the line continues]\n"
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
