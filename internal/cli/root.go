package cli

import (
	"context"
	"strconv"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// commands returns the tree of commands.
func (inv *invocation) commands() *command {
	return &command{
		name:    program,
		purpose: "run AI coding agents behind one contract",
		details: `bus-agent runs the agent CLI you have installed with a prompt, in a directory,
and shows what it does. Registered runtimes: ` + runtimesHere + `.`,
		flags: inv.global.flags(),
		sub: []*command{
			later("detect", inv.detectCommand),
			later("run", inv.runCommand),
			later("session", inv.sessionCommand),
			later("chat", inv.chatCommand),
			later("runs", inv.runsCommand),
			later("render", inv.renderCommand),
			later("format", inv.formatCommand),
			later("set", inv.setCommand),
			later("unset", inv.unsetCommand),
			later("config", inv.configCommand),
			later("instructions", inv.instructionsCommand),
			later("runtime", inv.runtimeCommand),
			later("doctor", func() *command { return inv.doctorCommand("doctor") }),
			later("completion", inv.completionCommand),
			later("help", inv.helpCommand),
		},
		examples: []example{
			{"which agents are here? the first one is used by default", "bus-agent detect"},
			{"ask one something about the code in this directory", `bus-agent run --access read --text "What does this project do?"`},
			{"choose the default runtime", "bus-agent set runtime " + runtimeHere},
		},
		exits: exitCodes("the command did what it says"),
	}
}

// exitCodes lists the exit codes every command has.
func exitCodes(success string, failures ...string) []exitCode {
	codes := []exitCode{{exitOK, success}}
	for _, f := range failures {
		codes = append(codes, exitCode{exitFailure, f})
	}
	if len(failures) == 0 {
		codes = append(codes, exitCode{exitFailure, "it failed"})
	}
	return append(codes, exitCode{exitUsage, "the call is wrong; nothing was started or written"})
}

func (inv *invocation) helpCommand() *command {
	return &command{
		name:      "help",
		purpose:   "say more of a command",
		arguments: "[COMMAND...]",
		max:       -1,
		examples: []example{
			{"everything about run", "bus-agent help run"},
			{"how to change one default", "bus-agent help set model"},
		},
		exits: exitCodes("the help was printed"),
		words: func(done []string) []string {
			c := inv.root
			for _, name := range done {
				if c = c.lookup(name); c == nil {
					return nil
				}
			}
			return c.subnames()
		},
		run: func(_ context.Context, call call) error {
			path := []*command{inv.root}
			for _, name := range call.args {
				last := path[len(path)-1]
				next := last.lookup(name)
				if next == nil {
					return &misuse{agent.Usagef("unknown help topic %q%s", name, didYouMean(name, last.subnames())), inv.root}
				}
				path = append(path, next)
			}
			return inv.out.print(inv.help(path))
		},
	}
}

// runner returns a runner over what the environment offers. Its warnings, and
// those of what is stored, go to warn.
func (inv *invocation) runner(warn func(string)) *runner.Runner {
	for _, line := range inv.stored.warnings {
		warn(line)
	}
	return &runner.Runner{
		Registry:    inv.stored.registry,
		Preferences: inv.stored.preferences,
		Recorder:    inv.env.Recorder,
		Environ:     append([]string{}, inv.env.Environ...), // never nil: that is the process's
		Workdir:     inv.env.Dir,
		Warn:        warn,
	}
}

func quote(s string) string { return strconv.Quote(s) }
