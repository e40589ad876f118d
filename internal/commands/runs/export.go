package runs

import (
	"bufio"
	"context"
	"errors"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

func exportCommand(prog *cmdline.Program) *urfave.Command {
	s, to := &selection{}, &destination{}
	return &urfave.Command{
		Name:      "export",
		Usage:     "write records of runs to one file",
		ArgsUsage: "[RUN...]",
		Description: `Writes the records of runs, and the prompts and messages of their tasks, to a tar file
compressed with gzip. Name the runs or select them with flags. To use the file, unpack
it anywhere and give that folder as --runs-root. The same records always give the same
bytes. Only you can read the file, because it holds what the agents read and said.`,
		Flags: append(to.flags("write to `FILE`, such as runs.tar.gz; required"), s.flags(prog)...),
		UsageText: cmdline.UsageText(`# one run, to attach to a bug report
bus-agent runs export latest --to run.tar.gz
# the runs of this week
bus-agent runs export --since 7d --to week.tar.gz`,
			"the file was written", "the file exists or could not be written; no partial file is left"),
		BashComplete: completes(prog, &s.root, true),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			switch {
			case to.file == "":
				return cmdline.Misusef("runs export needs --to FILE")
			case len(call.Args) > 0 && len(s.words) > 0:
				return cmdline.Misusef("runs are chosen twice, by name and by flags")
			case len(call.Args) == 0 && len(s.words) == 0:
				return cmdline.Misusef("runs export needs a RUN, or flags that choose runs, such as --project or --since")
			}
			records, err := openRecords(prog, s.root)
			if err != nil {
				return err
			}
			list, err := chooseExported(ctx, prog, records, call.Args, s.Filter)
			if err != nil {
				return err
			}
			return to.write(ctx, prog, len(list), func(w io.Writer) error {
				buffered := bufio.NewWriterSize(w, 256<<10)
				leftOut, err := records.Export(ctx, buffered, list)
				for i, name := range leftOut {
					leftOut[i] = runner.Mask(prog.Env.Environ, name)
				}
				prog.Screen.WarnSome("left out, because it is not an ordinary file or too large: ", leftOut)
				return errors.Join(err, buffered.Flush())
			})
		}),
	}
}

// chooseExported returns the named runs, or else those that the filter chooses.
func chooseExported(ctx context.Context, prog *cmdline.Program, records *runs.Records, names []string, filter runs.Filter) ([]runs.Run, error) {
	if len(names) == 0 {
		list, err := choose(ctx, prog, records, filter)
		if err == nil && len(list) == 0 {
			err = errors.New("the flags choose no run; nothing was written")
		}
		return list, err
	}
	var list []runs.Run
	for _, name := range names {
		run, err := records.Find(ctx, name)
		if err != nil {
			return nil, cmdline.CanceledBy(ctx, err)
		}
		list = append(list, run)
	}
	return list, nil
}
