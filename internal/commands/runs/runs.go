// Package runs has the commands that show, export and remove the records of runs.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runs"
)

// Command is "runs".
func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "runs",
		Usage: "show and remove the records of runs",
		Description: `Shows and removes records: those that "run --record" writes, and those of other programs
in the format of the Agent Protocol.

Name a run by its ID, by the beginning or end of its ID, or by "latest". Put its task
before it, or its project and task, to narrow the search: PROJECT/TASK/latest. You can
also give the path of its folder.

The status of a run is one of:

  running    its program is running
  completed  it succeeded
  failed     it failed
  crashed    its program is gone and did not record the end
  unknown    it is recorded as running, but on another machine, in another container
             or before this machine started; or its recorded status is not a known one`,
		Subcommands: []*urfave.Command{
			listCommand(prog),
			showCommand(prog),
			tailCommand(prog),
			outputCommand(prog),
			eventsCommand(prog),
			messagesCommand(prog),
			reportCommand(prog),
			exportCommand(prog),
			pruneCommand(prog),
		},
		UsageText: cmdline.UsageText(`# what ran here?
bus-agent runs list
# what was the last answer?
bus-agent runs output latest
# watch a run
bus-agent runs tail --follow latest`,
			"the command succeeded"),
		Action: prog.Group,
	}
}

// openRecords returns the records in the folder of --runs-root, or in the default one.
func openRecords(prog *cmdline.Program, root string) (*runs.Records, error) {
	dir, err := prog.RunsRoot(root)
	if err != nil {
		return nil, err
	}
	return &runs.Records{Root: filepath.Clean(dir)}, nil
}

// target is the run that a command is about.
type target struct {
	*runs.Run
	records *runs.Records
}

// action returns the action of a command whose argument is a run.
func action(prog *cmdline.Program, traits cmdline.Traits, root *string, do func(context.Context, target) error) urfave.ActionFunc {
	return prog.Action(traits, func(ctx context.Context, call cmdline.Call) error {
		records, err := openRecords(prog, *root)
		if err != nil {
			return err
		}
		run, err := records.Find(ctx, call.Args[0])
		if err != nil {
			return cmdline.CanceledBy(ctx, err)
		}
		return do(ctx, target{&run, records})
	})
}

// completes completes one run, or any number.
func completes(prog *cmdline.Program, root *string, many bool) urfave.BashCompleteFunc {
	return cmdline.Completes(func(done []string) []string {
		records, err := openRecords(prog, *root)
		if err != nil || len(done) > 0 && !many {
			return nil
		}
		list, _, _ := records.List(context.Background(), runs.Filter{Limit: 100}) // errors are not shown while a user types
		words := []string{runs.Latest + "\tthe run that began last"}
		for i := range list {
			r := &list[i]
			words = append(words, idOf(r)+"\t"+cmdline.OneWord(r.Agent+" "+string(r.Status)+" "+r.ProjectID+"/"+r.TaskID))
		}
		return words
	})
}

// selection is the flags that choose runs.
type selection struct {
	runs.Filter
	root  string
	words []string // the flags as they were given
}

// noted is a flag of a selection that notes what was given.
type noted struct {
	urfave.Generic
	to   *selection
	name string
}

func (n noted) Set(value string) error {
	if value != "" {
		n.to.words = append(n.to.words, "--"+n.name, value)
	}
	return n.Generic.Set(value)
}

func (s *selection) flags(prog *cmdline.Program) []urfave.Flag {
	moment := func(to *time.Time) func(string) error {
		return func(v string) (err error) {
			*to, err = parseMoment(v, time.Now())
			return err
		}
	}
	flags := []urfave.Flag{run.RootFlag(&s.root)}
	for _, f := range []*cmdline.Flag{
		cmdline.String("project", "only runs of project `ID`", &s.Project),
		cmdline.String("task", "only runs of task `ID`", &s.Task),
		cmdline.OneOf("status", "only runs that are `STATUS`: running, completed, failed, crashed or unknown", &s.Status,
			runs.StatusRunning, runs.StatusCompleted, runs.StatusFailed, runs.StatusCrashed, runs.StatusUnknown),
		cmdline.String("runtime", "only runs of `RUNTIME`; an ID without a variant includes all variants", &s.Runtime).Complete(prog.Stored.Registry.Tokens),
		cmdline.String("parent-run", "only runs that run `ID` started", &s.Parent),
		cmdline.Func("since", "only runs that began after `WHEN`: an age such as 90m, 36h, 7d or 2w, or a date", moment(&s.Since)),
		cmdline.Func("older-than", "only runs that began before `WHEN`", moment(&s.Until)),
	} {
		f.Value = noted{f.Value, s, f.Name}
		flags = append(flags, f)
	}
	return flags
}

// parseMoment parses an age, or a date with or without a time of day.
func parseMoment(v string, now time.Time) (time.Time, error) {
	if age, ok := parseAge(v); ok {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, v, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither an age such as 36h or 7d nor a date such as 2026-01-31", v)
}

// parseAge parses a duration, which may be in whole days or weeks.
func parseAge(text string) (time.Duration, bool) {
	const day = 24 * time.Hour
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(digits, 10, 16)
			return time.Duration(n) * length, err == nil && n <= uint64(math.MaxInt64/length)
		}
	}
	age, err := time.ParseDuration(text)
	return age, err == nil && age >= 0
}

// choose returns the runs that a filter chooses, and warns of unreadable records.
func choose(ctx context.Context, prog *cmdline.Program, records *runs.Records, filter runs.Filter) ([]runs.Run, error) {
	list, problems, err := records.List(ctx, filter)
	if err != nil {
		return nil, cmdline.CanceledBy(ctx, &cmdline.Failure{Text: "cannot list the runs in " + cmdline.Printable(records.Root), Err: cmdline.Cause(err)})
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	prog.Screen.WarnSome("not listed: ", texts)
	return list, nil
}

// idOf returns the ID of a run: the name of its folder.
func idOf(r *runs.Run) string { return cmdline.OneWord(filepath.Base(r.Dir)) }

// took returns a duration to show, "-" if it is unknown.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return max(d.Round(time.Millisecond), time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// destination is the flags that name a file to write.
type destination struct {
	file  string
	force bool
}

func (d *destination) flags(usage string) []urfave.Flag {
	return []urfave.Flag{
		cmdline.File("to", usage, &d.file),
		cmdline.Switch("force", "replace the file if it exists", &d.force),
	}
}

// path returns the absolute path, or an error if the file exists and must not be
// replaced.
func (d *destination) path(prog *cmdline.Program) (string, error) {
	path := prog.Env.Abs(d.file)
	if _, err := os.Lstat(path); err == nil && !d.force {
		return "", errors.New(cmdline.Quote(path) + " exists; choose another name, or --force to replace it")
	}
	return path, nil
}

// write writes n runs to the file, which only the user can read, whole or not at all. A
// symbolic link in its place is replaced, not followed.
func (d *destination) write(ctx context.Context, prog *cmdline.Program, n int, write func(io.Writer) error) error {
	path, err := d.path(prog)
	if err != nil {
		return err
	}
	if err := writePrivate(path, d.force, write); err != nil {
		return cmdline.CanceledBy(ctx, cmdline.OutputError(cmdline.Quote(path), err))
	}
	prog.Screen.Info(cmdline.Count(n, "run", "runs") + " written to " + cmdline.Printable(path))
	return nil
}

// writePrivate holds the folder of the file while it writes.
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
