package runs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

func runsExportCommand(prog *cmdline.Program) *urfave.Command {
	o := &runFilter{}
	var to string
	var force bool
	return &urfave.Command{
		Name:      "export",
		Usage:     "write records of runs to one file",
		ArgsUsage: "[RUN...]",
		Description: `Writes a tar file, compressed by gzip, with the records of the runs named, or of
those that the flags choose, and the prompts and messages of their tasks. Unpacked
anywhere it is a folder that --runs-root takes. The same records give the same bytes.
The file is readable by you alone: a record holds what the agent read and said.`,
		Flags: append([]urfave.Flag{
			cmdline.Option("to", "write to `FILE`, such as runs.tar.gz; required", &to).Of(cmdline.Files),
			cmdline.Toggle("force", "replace the file if it exists", &force),
		}, o.flags(prog)...),
		UsageText: cmdline.UsageText(`# one run, to attach to a report
bus-agent runs export latest --to run.tar.gz
# what ran this week
bus-agent runs export --since 7d --to week.tar.gz`,
			"the file was written", "it could not be written, or exists; nothing is left of a part"),
		BashComplete: cmdline.Completes(runWords(prog, &o.root, true)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			filter, err := o.filter(time.Now())
			switch {
			case err != nil:
				return err
			case to == "":
				return agent.Usagef("runs export needs --to FILE")
			case len(call.Args) > 0 && o.given():
				return agent.Usagef("runs are chosen twice, by name and by flags")
			case len(call.Args) == 0 && !o.given():
				return agent.Usagef("runs export needs a RUN, or flags that choose some, such as --project or --since")
			}
			store, err := runsStore(prog, o.root)
			if err != nil {
				return err
			}
			list, err := chooseExported(prog, ctx, store, call.Args, filter)
			if err != nil {
				return err
			}
			return exportRuns(prog, ctx, store, list, prog.Env.Abs(to), force)
		}),
	}
}

// exported returns the runs to export.
func chooseExported(prog *cmdline.Program, ctx context.Context, store *runs.Records, handles []string, filter runs.Filter) ([]runs.Run, error) {
	if len(handles) == 0 {
		list, err := choose(prog, ctx, store, filter)
		if err == nil && len(list) == 0 {
			err = errors.New("the flags choose no run; nothing was written")
		}
		return list, err
	}
	var list []runs.Run
	for _, handle := range handles {
		run, err := store.Find(ctx, handle)
		if err != nil {
			return nil, cmdline.CanceledBy(ctx, err)
		}
		list = append(list, run)
	}
	return list, nil
}

// export writes the file, whole or not at all.
func exportRuns(prog *cmdline.Program, ctx context.Context, store *runs.Records, list []runs.Run, path string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return errors.New(cmdline.Quote(path) + " exists; choose another name, or --force to replace it")
	}
	var leftOut []string
	err := writePrivate(path, force, func(w io.Writer) (err error) {
		to := bufio.NewWriterSize(w, 256<<10)
		if leftOut, err = store.Export(ctx, to, list); err != nil {
			return err
		}
		return to.Flush()
	})
	if err != nil {
		return cmdline.CanceledBy(ctx, cmdline.OutputError(cmdline.Quote(path), err))
	}
	for _, name := range leftOut {
		prog.Screen.Warn("left out, because it is not an ordinary file or too much: " + runner.Mask(prog.Env.Environ, cmdline.OneWord(name)))
	}
	prog.Screen.Info(cmdline.Count(len(list), "run is", "runs are") + " in " + cmdline.Printable(path))
	return nil
}
