package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	sweep          bool
	workdir, clear string
	owner          int
}

// DoctorCommand is "doctor".
func DoctorCommand(prog *cmdline.Program) *urfave.Command {
	o := &doctorOptions{}
	return &urfave.Command{
		Name:      "doctor",
		Usage:     "check the runtimes; find stale processes and files of killed runs",
		ArgsUsage: "[RUNTIME...]",
		Description: `For each named runtime, or for all, doctor checks the executable, its version and signs
of a login. It mentions a version that is newer than the one with which verify last
checked the runtime. It shows what a run in this directory would do with AGENTS.md and with the
settings of the repository, and how the runtime runs sessions. It starts the executable
for its version only and calls no model. Doctor also shows which runtime is the default,
checks that records and the state of sessions can be written and that tmux can be used,
and shows the runtimes that runs with --fallback skip because they are in cooldown.

Without a name, doctor also lists stale processes and files. A run cleans up after
itself, unless bus-agent itself is killed. Then agent processes may continue, and the
private home and temporary files remain. --sweep names each of them and its run on
standard error, and then ends the processes and removes the files. With --sweep or
--owner, doctor checks nothing else.

Doctor finds stale processes and files of this user, of this container and of one
workdir, left since this machine started. It ignores those of a running bus-agent, those
that may belong to another machine, and sessions that can be resumed.`,
		Flags: []urfave.Flag{
			cmdline.Switch("sweep", "end the stale processes and remove the stale files", &o.sweep),
			prog.Dir("workdir", "check `DIR` (default: the current directory)", &o.workdir),
			prog.Runtime("clear-cooldown", "clear the cooldown of `RUNTIME`, and do nothing else", &o.clear),
			cmdline.Number("owner", "find only what the bus-agent process `PID` left behind", 1, &o.owner),
		},
		UsageText: cmdline.UsageText(`# does everything work here?
bus-agent doctor
# can this runtime be used? for a script
bus-agent doctor RUNTIME --format json
# end stale processes and remove stale files
bus-agent doctor --sweep`,
			"everything works; runtimes that were not named may be unusable",
			"a named runtime or no runtime can be used, or a check or the cleanup failed"),
		BashComplete: cmdline.Completes(func([]string) []string { return prog.Stored.Registry.Tokens() }),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			return doctor(ctx, prog, o, call.Args)
		}),
	}
}

// doctorReport is what doctor prints, in JSON. What was not checked is left out.
type doctorReport struct {
	Runtimes  []runtimeHealth     `json:"runtimes,omitzero"`
	State     []check             `json:"state,omitzero"`
	Cooldowns []fallback.Cooldown `json:"cooldowns,omitzero"`
	Cleared   []string            `json:"cleared,omitzero"`
	Swept     bool                `json:"swept"`
	Processes []staleProcess      `json:"processes,omitzero"`
	Folders   []staleFolder       `json:"folders,omitzero"`
}

func doctor(ctx context.Context, prog *cmdline.Program, o *doctorOptions, names []string) (err error) {
	onlyStale := o.sweep || o.owner > 0
	switch {
	case o.clear != "" && (onlyStale || o.workdir != "" || len(names) > 0):
		return cmdline.Misusef("--clear-cooldown does nothing else; leave out other flags and arguments")
	case o.clear != "":
		return clearCooldown(prog, o.clear)
	case onlyStale && len(names) > 0:
		return cmdline.Misusef("--sweep and --owner are about killed runs; leave them or %s out", strings.Join(names, " "))
	case o.workdir == "":
		o.workdir = prog.Env.Dir
	}
	report := doctorReport{Swept: o.sweep}
	var failures cmdline.Failures
	if !onlyStale {
		if report.Runtimes, err = checkRuntimes(ctx, prog, names, o.workdir); err != nil {
			return err
		}
		report.State = slices.Concat(checkSettings(ctx, prog), checkDefault(ctx, prog, o.workdir),
			checkState(prog, o.workdir), []check{checkTmux(ctx, prog, o.workdir)})
		report.Cooldowns = findCooldowns(prog, names)
		failures = report.broken(len(names) > 0)
	}
	if len(names) == 0 {
		if err := findStale(ctx, prog, &report, o.workdir, o.owner); err != nil {
			failures = append(failures, err)
		}
	}
	if err := prog.Out.Report(report, report.text()); err != nil {
		return err
	}
	if failures == nil {
		return nil
	}
	return failures
}

// broken returns what does not work: of the runtimes, if they were named, and of the
// state.
func (r *doctorReport) broken(named bool) cmdline.Failures {
	var errs []error
	usable := false
	for _, h := range r.Runtimes {
		usable = usable || h.Status == healthOK
		if named && h.Status != healthOK {
			errs = append(errs, fmt.Errorf("%s is %s", h.ID, h.Status))
		}
	}
	if !named && !usable {
		errs = append(errs, errors.New("no runtime can be used; see above"))
	}
	for _, c := range r.State {
		if c.Status == checkProblem {
			errs = append(errs, fmt.Errorf("%s: %s", c.Name, cmdline.OneWord(c.Text)))
		}
	}
	return errs
}

func (r *doctorReport) text() string {
	var b strings.Builder
	for _, h := range r.Runtimes {
		fmt.Fprintf(&b, "%s: %s\n", h.ID, h.Status)
		writeChecks(&b, h.Checks)
	}
	if r.State != nil {
		b.WriteString("state\n")
		writeChecks(&b, r.State)
	}
	b.WriteString(r.cooldownText())
	if r.Processes != nil {
		b.WriteString(r.staleText())
	}
	return b.String()
}
