package runtimes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
)

// doctorOptions are the flags of doctor as they were given.
type doctorOptions struct {
	sweep         bool
	workdir, wake string
	owner         int
}

func DoctorCommand(prog *cmdline.Program) *urfave.Command {
	o := &doctorOptions{}
	return &urfave.Command{
		Name:      "doctor",
		Usage:     "look for what is wrong with the runtimes, and for what killed runs have left",
		ArgsUsage: "[RUNTIME...]",
		Description: `Looks at each runtime, or at those that are named: its executable, its version
beside the one that was tested, signs of a login, what a run here would do with
AGENTS.md and leave out of the repository, how it holds sessions. Nothing of it asks
a model; the one thing that is started is the executable with --version. It also
looks at whether what runs and sessions keep can be written, and lists the
runtimes that runs with --fallback leave out for some time, because they had no
quota left or no login; --wake ends that for one.

Without a name it lists too what killed runs have left. A run ends and removes
everything of its own, unless bus-agent itself is killed. Then processes of the
agent may live on, and its private home and temporary files stay. With --sweep they
are ended and removed; --sweep and --owner look for nothing else.

Only what a dead bus-agent has left is found: of this user, since the last start
of this machine, in this container, and in one workdir. What belongs to a run that
goes on is never touched, nor is what may belong to one on another machine.
Sessions that can be resumed stay.`,
		Flags: []urfave.Flag{
			cmdline.Toggle("sweep", "end the processes and remove the folders that are found", &o.sweep),
			cmdline.Option("workdir", "look at `DIR` (default: the current directory)", &o.workdir).Of(cmdline.Dirs),
			cmdline.Option("wake", "let runs with --fallback try `RUNTIME` again at once, and do nothing else", &o.wake).Of(prog.Stored.Registry.Tokens),
			cmdline.Number("owner", "look only for what the bus-agent with this `PID` has left", 1, &o.owner),
		},
		UsageText: cmdline.UsageText(`# does everything work here?
bus-agent doctor
# can this one be used? for a script
bus-agent doctor RUNTIME --format json
# end and remove what killed runs have left
bus-agent doctor --sweep`,
			"all is well, but for what is not named", "a runtime that is named cannot be used, or something cannot be written, looked at, ended or removed"),
		BashComplete: cmdline.Completes(func([]string) []string { return prog.Stored.Registry.Tokens() }),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			return examineAll(prog, ctx, o, call.Args)
		}),
	}
}

// doctorReport is what doctor prints, in JSON. What was not looked at is left out.
type doctorReport struct {
	Runtimes  []runtimeHealth     `json:"runtimes,omitzero"`
	State     []check             `json:"state,omitzero"`
	Resting   []fallback.Cooldown `json:"resting,omitzero"`
	Woken     []string            `json:"woken,omitzero"`
	Swept     bool                `json:"swept"`
	Processes []leftProcess       `json:"processes,omitzero"`
	Folders   []leftFolder        `json:"folders,omitzero"`
}

func examineAll(prog *cmdline.Program, ctx context.Context, o *doctorOptions, names []string) error {
	if o.wake != "" {
		if o.sweep || o.owner > 0 || o.workdir != "" || len(names) > 0 {
			return agent.Usagef("--wake stands alone; leave everything else out")
		}
		return wake(prog, o.wake)
	}
	dir, err := prog.Workdir(o.workdir)
	if err != nil {
		return err
	}
	leftAlone := o.sweep || o.owner > 0
	if leftAlone && len(names) > 0 {
		return agent.Usagef("--sweep and --owner are for what killed runs have left; leave them or %s out", strings.Join(names, " "))
	}
	report := doctorReport{Swept: o.sweep}
	var errs []error
	if !leftAlone {
		if report.Runtimes, err = checkRuntimes(prog, ctx, names, dir); err != nil {
			return err
		}
		report.State = checkState(prog, dir)
		findCooldowns(prog, &report, names)
		errs = append(errs, report.broken(len(names) > 0))
	}
	if len(names) == 0 {
		errs = append(errs, findLeft(prog, ctx, &report, dir, o.owner))
	}
	if prog.Global.JSON() {
		err = prog.Out.PrintJSON(report)
	} else {
		err = prog.Out.Print(report.text())
	}
	if err != nil {
		return err
	}
	return errors.Join(errs...)
}

// broken returns what does not work of what was asked for.
func (r *doctorReport) broken(named bool) error {
	var errs []error
	for _, h := range r.Runtimes {
		if named && h.Status != healthOK {
			errs = append(errs, fmt.Errorf("%s is %s", h.ID, h.Status))
		}
	}
	for _, c := range r.State {
		if c.Status == checkProblem {
			errs = append(errs, fmt.Errorf("%s cannot be written: %s", c.Name, cmdline.OneWord(c.Text)))
		}
	}
	return errors.Join(errs...)
}

// text is the report for people.
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
	b.WriteString(r.restingText())
	if r.Processes != nil {
		b.WriteString(r.leftText())
	}
	return b.String()
}
