package runtimes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// findResting adds what rests, of the runtimes that names names, or of all where
// there are none. What cannot be read is a warning.
func findCooldowns(prog *cmdline.Program, report *doctorReport, names []string) {
	report.Resting = []fallback.Cooldown{}
	store, err := restStore(prog)
	if err != nil {
		return // nothing can rest
	}
	list, err := store.List(time.Now())
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			prog.Screen.Warn(line + "; nobody rests because of it")
		}
	}
	for _, rest := range list {
		asked := func(name string) bool { return baseID(name) == baseID(rest.Runtime) }
		if len(names) == 0 || slices.ContainsFunc(names, asked) {
			report.Resting = append(report.Resting, rest)
		}
	}
}

// baseID returns the ID in a runtime token.
func baseID(token string) string {
	id, _, _ := strings.Cut(token, ":")
	return id
}

func restStore(prog *cmdline.Program) (*fallback.Cooldowns, error) {
	dir, err := fallback.DefaultDir(prog.Env.Environ)
	if err != nil {
		return nil, err
	}
	return fallback.NewCooldowns(dir), nil
}

// wake ends the rest of a runtime.
func wake(prog *cmdline.Program, token string) error {
	if _, _, err := prog.Stored.Registry.ParseToken(token); err != nil {
		return agent.Usagef("--wake: %w", err)
	}
	report := doctorReport{Woken: []string{}}
	store, err := restStore(prog)
	if err == nil {
		var woken bool
		if woken, err = store.Clear(token); woken {
			report.Woken = append(report.Woken, token)
		}
	}
	if err != nil {
		return &cmdline.Failure{Text: token + " cannot be woken", Err: cmdline.Cause(err)}
	}
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(report)
	}
	if len(report.Woken) == 0 {
		return prog.Out.Print(token + " does not rest\n")
	}
	return prog.Out.Print(token + " rests no longer\n")
}

// restingText says what rests, for people.
func (r *doctorReport) restingText() string {
	if len(r.Resting) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("resting, for runs with --fallback\n")
	for _, rest := range r.Resting {
		fmt.Fprintf(&b, "  %-15s  note: %s: %s; end it with --wake %s\n", rest.Runtime, rest, cmdline.OneWord(rest.Reason), rest.Runtime)
	}
	return b.String()
}
