package runs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/capture"
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
has an answer only if the agent wrote output.md itself. If a completed run has no
output.md, its answer is read from the events or the output of the agent.`,
		Flags: []urfave.Flag{run.RootFlag(&root)},
		UsageText: cmdline.UsageText(`# the last answer
bus-agent runs output latest
# pass it on to another agent
bus-agent runs output latest | bus-agent run --prompt -`,
			"the answer was printed", "there is no answer"),
		BashComplete: completes(prog, &root, false),
		Action: action(prog, cmdline.JSON, &root, func(ctx context.Context, t target) error {
			answer, err := openAnswer(ctx, prog, t.Run)
			if err != nil {
				return &cmdline.Failure{Text: "the run " + idOf(t.Run) + " has no answer", Err: cmdline.Cause(err)}
			}
			defer answer.Close()
			if !prog.Global.JSON() {
				return sanitizeLines(prog.Out, answer)
			}
			report := outputReport{RunID: t.RunID, Runtime: t.Agent, Status: t.Status}
			text, err := io.ReadAll(io.LimitReader(answer, maxReported+1))
			if err != nil {
				return err
			}
			report.Truncated = len(text) > maxReported
			report.Text = strings.ToValidUTF8(string(text[:min(len(text), maxReported)]), "\ufffd")
			return prog.Out.Report(report, "")
		}),
	}
}

// outputReport is the answer of a run in JSON.
type outputReport struct {
	Text      string      `json:"text"`
	Truncated bool        `json:"text_truncated,omitempty"`
	Runtime   string      `json:"runtime"`
	RunID     string      `json:"run_id"`
	Status    runs.Status `json:"status"`
}

// maxReported is the longest answer in JSON, in bytes.
const maxReported = capture.MaxAnswer

// openAnswer opens the answer of a run.
func openAnswer(ctx context.Context, prog *cmdline.Program, run *runs.Run) (io.ReadCloser, error) {
	f, err := run.Open(runs.FileOutput)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("it is " + cmdline.OneWord(string(run.Status)))
	case err != nil:
		return nil, err
	case sizeOf(f) > 0:
		return f, nil
	default:
		f.Close()
		err = errors.New(runs.FileOutput + " is empty")
	}
	if run.Status != runs.StatusCompleted {
		return nil, err
	}
	var said answerPrinter
	if failure := printConversation(ctx, prog, run, false, nil, &said); failure != nil && ctx.Err() != nil {
		return nil, failure
	}
	text, _ := said.answer.Text(said.result)
	if text == "" {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// answerPrinter collects the answer in the events of a run.
type answerPrinter struct {
	answer capture.Answer
	result *agent.Event
}

func (p *answerPrinter) entry(e *runs.Event) error { return p.Event(&e.Event) }

func (p *answerPrinter) Event(e *agent.Event) error {
	if p.answer.Note(e); e.Kind == agent.KindResult && e.Subagent == "" {
		p.result = e.Clone()
	}
	return nil
}

func (p *answerPrinter) end() error { return nil }

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
