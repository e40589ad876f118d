package cli

import (
	"context"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// doctorOptions are the flags of doctor as they were given.
type doctorOptions struct {
	sweep          bool
	workdir, owner value
}

func (inv *invocation) doctorCommand() *command {
	o := &doctorOptions{}
	o.workdir.dirs = true
	return &command{
		name:    "doctor",
		purpose: "find what killed runs have left behind, and end it",
		details: `A run ends and removes everything of its own, unless bus-agent itself is killed.
Then processes of the agent may live on, and its private home and temporary files
stay. doctor lists them; with --sweep it ends and removes them.

Only what a dead bus-agent has left is found: of this user, since the last start
of this machine, in this container, and in one workdir. What belongs to a run that
goes on is never touched, nor is what may belong to one on another machine.
Sessions that can be resumed stay.`,
		json: true,
		flags: []urfave.Flag{
			toggle("sweep", "end the processes and remove the folders that are found", &o.sweep),
			option("workdir", "look for private homes in `DIR` (default: the current directory)", &o.workdir),
			option("owner", "look only for what the bus-agent with this `PID` has left", &o.owner),
		},
		examples: []example{
			{"did a run that was killed leave anything?", "bus-agent doctor"},
			{"end and remove it", "bus-agent doctor --sweep"},
		},
		exits: exitCodes("what was found is listed, or gone with --sweep", "something could not be looked at, ended or removed"),
		run: func(_ context.Context, _ call) error {
			return inv.doctor(o)
		},
	}
}

// doctorReport is what doctor prints, in JSON.
type doctorReport struct {
	Swept     bool          `json:"swept"`
	Processes []leftProcess `json:"processes"`
	Folders   []leftFolder  `json:"folders"`
}

func (inv *invocation) doctor(o *doctorOptions) error {
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
	report := doctorReport{Swept: o.sweep}
	err = inv.findLeft(&report, dir, owner)
	if inv.global.json() {
		if printErr := inv.out.printJSON(report); printErr != nil {
			return printErr
		}
		return err
	}
	if printErr := inv.out.print(report.text()); printErr != nil {
		return printErr
	}
	return err
}
