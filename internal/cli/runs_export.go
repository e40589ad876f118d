package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func (inv *invocation) runsExportCommand() *urfave.Command {
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
			option("to", "write to `FILE`, such as runs.tar.gz; required", &to).of(files),
			toggle("force", "replace the file if it exists", &force),
		}, o.flags(inv)...),
		UsageText: inv.usageText(exitCodes("the file was written", "it could not be written, or exists; nothing is left of a part"),
			example{"one run, to attach to a report", "bus-agent runs export latest --to run.tar.gz"},
			example{"what ran this week", "bus-agent runs export --since 7d --to week.tar.gz"},
		),
		BashComplete: completes(inv.runWords(&o.root, true)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			filter, err := o.filter(time.Now())
			switch {
			case err != nil:
				return err
			case to == "":
				return agent.Usagef("runs export needs --to FILE")
			case len(call.args) > 0 && o.given():
				return agent.Usagef("runs are chosen twice, by name and by flags")
			case len(call.args) == 0 && !o.given():
				return agent.Usagef("runs export needs a RUN, or flags that choose some, such as --project or --since")
			}
			store, err := inv.runsStore(o.root)
			if err != nil {
				return err
			}
			list, err := inv.exported(ctx, store, call.args, filter)
			if err != nil {
				return err
			}
			return inv.export(ctx, store, list, inv.env.abs(to), force)
		}),
	}
}

// exported returns the runs to export.
func (inv *invocation) exported(ctx context.Context, store *runs.Records, handles []string, filter runs.Filter) ([]runs.Run, error) {
	if len(handles) == 0 {
		list, err := inv.choose(ctx, store, filter)
		if err == nil && len(list) == 0 {
			err = errors.New("the flags choose no run; nothing was written")
		}
		return list, err
	}
	var list []runs.Run
	for _, handle := range handles {
		run, err := store.Find(ctx, handle)
		if err != nil {
			return nil, canceledBy(ctx, err)
		}
		list = append(list, run)
	}
	return list, nil
}

// export writes the file, whole or not at all.
func (inv *invocation) export(ctx context.Context, store *runs.Records, list []runs.Run, path string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return errors.New(quote(path) + " exists; choose another name, or --force to replace it")
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
		return canceledBy(ctx, outputError(quote(path), err))
	}
	for _, name := range leftOut {
		inv.screen.warn("left out, because it is not a regular file or too much: " + oneWord(name))
	}
	inv.screen.info(count(len(list), "run is", "runs are") + " in " + printable(path))
	return nil
}
