package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
)

// doctorOptions are the flags of doctor as they were given.
type doctorOptions struct {
	sweep                bool
	workdir, owner, wake value
}

// doctorCommand returns the command, which is called by name.
func (inv *invocation) doctorCommand(name string) *command {
	o := &doctorOptions{}
	o.workdir.dirs = true
	o.wake.words = func() []string { return inv.stored.registry.Tokens() }
	return &command{
		name:      "doctor",
		purpose:   "look for what is wrong with the runtimes, and for what killed runs have left",
		arguments: "[RUNTIME...]",
		max:       -1,
		details: `Looks at each runtime, or at those that are named: its executable, its version
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
		json: true,
		flags: []*commandFlag{
			toggle("sweep", "end the processes and remove the folders that are found", &o.sweep),
			option("workdir", "look at `DIR` (default: the current directory)", &o.workdir),
			option("wake", "let runs with --fallback try `RUNTIME` again at once, and do nothing else", &o.wake),
			option("owner", "look only for what the bus-agent with this `PID` has left", &o.owner),
		},
		examples: []example{
			{"does everything work here?", "bus-agent " + name},
			{"can this one be used? for a script", "bus-agent " + name + " " + runtimeHere + " --format json"},
			{"end and remove what killed runs have left", "bus-agent " + name + " --sweep"},
		},
		exits: exitCodes("all is well, but for what is not named", "a runtime that is named cannot be used, or something cannot be written, looked at, ended or removed"),
		slow:  true,
		words: func([]string) []string { return inv.stored.registry.Tokens() },
		run: func(ctx context.Context, call call) error {
			return inv.doctor(ctx, o, call.args)
		},
	}
}

// doctorReport is what doctor prints, in JSON. What was not looked at is left out.
type doctorReport struct {
	Runtimes  []runtimeHealth `json:"runtimes,omitzero"`
	State     []check         `json:"state,omitzero"`
	Resting   []fallback.Rest `json:"resting,omitzero"`
	Woken     []string        `json:"woken,omitzero"`
	Swept     bool            `json:"swept"`
	Processes []leftProcess   `json:"processes,omitzero"`
	Folders   []leftFolder    `json:"folders,omitzero"`
}

func (inv *invocation) doctor(ctx context.Context, o *doctorOptions, names []string) error {
	if o.wake.set {
		if o.sweep || o.owner.set || o.workdir.set || len(names) > 0 {
			return agent.Usagef("--wake stands alone; leave everything else out")
		}
		return inv.wake(o.wake.text)
	}
	dir, err := inv.workdir(o.workdir)
	if err != nil {
		return err
	}
	owner := 0
	if o.owner.set {
		if owner, err = strconv.Atoi(o.owner.text); err != nil || owner <= 0 {
			return agent.Usagef("--owner %q is no process ID", o.owner.text)
		}
	}
	leftAlone := o.sweep || o.owner.set
	if leftAlone && len(names) > 0 {
		return agent.Usagef("--sweep and --owner are for what killed runs have left; leave them or %s out", strings.Join(names, " "))
	}
	report := doctorReport{Swept: o.sweep}
	var errs []error
	if !leftAlone {
		if report.Runtimes, err = inv.checkRuntimes(ctx, names, dir); err != nil {
			return err
		}
		report.State = inv.checkState(dir)
		inv.findResting(&report, names)
		errs = append(errs, report.broken(len(names) > 0))
	}
	if len(names) == 0 {
		errs = append(errs, inv.findLeft(ctx, &report, dir, owner))
	}
	if inv.global.json() {
		err = inv.out.printJSON(report)
	} else {
		err = inv.out.print(report.text())
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
			errs = append(errs, fmt.Errorf("%s cannot be written: %s", c.Name, oneWord(c.Text)))
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
