package runtimes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

func openCooldowns(prog *cmdline.Program) (*fallback.Cooldowns, error) {
	dir, err := fallback.DefaultDir(prog.Env.Environ)
	if err != nil {
		return nil, err
	}
	return fallback.NewCooldowns(dir), nil
}

// findCooldowns returns the runtimes in cooldown, of those in names or of all if there
// are none. Unreadable files are warnings.
func findCooldowns(prog *cmdline.Program, names []string) []fallback.Cooldown {
	found := []fallback.Cooldown{}
	store, err := openCooldowns(prog)
	if err != nil {
		return found // nothing can be in cooldown
	}
	list, err := store.List(time.Now())
	if err != nil {
		prog.Screen.WarnSome("cooldown ignored: ", strings.Split(err.Error(), "\n"))
	}
	for _, c := range list {
		same := func(name string) bool { return baseID(name) == baseID(c.Runtime) }
		if len(names) == 0 || slices.ContainsFunc(names, same) {
			found = append(found, c)
		}
	}
	return found
}

// baseID returns the ID in a runtime token.
func baseID(token string) string {
	id, _, _ := strings.Cut(token, ":")
	return id
}

// clearCooldown ends the cooldown of a runtime.
func clearCooldown(prog *cmdline.Program, token string) error {
	report := doctorReport{Cleared: []string{}}
	text := token + " is not in cooldown\n"
	store, err := openCooldowns(prog)
	if err == nil {
		var cleared bool
		if cleared, err = store.Clear(token); cleared {
			report.Cleared = []string{token}
			text = token + ": cooldown cleared\n"
		}
	}
	if err != nil {
		return &cmdline.Failure{Text: "cannot clear the cooldown of " + token, Err: cmdline.Cause(err)}
	}
	return prog.Out.Report(report, text)
}

// cooldownText returns a line for each runtime in cooldown.
func (r *doctorReport) cooldownText() string {
	if len(r.Cooldowns) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("in cooldown, for runs with --fallback\n")
	for _, c := range r.Cooldowns {
		fmt.Fprintf(&b, "  %-15s  note: %s: %s; clear it with --clear-cooldown %s\n", c.Runtime, c, cmdline.OneWord(c.Reason), c.Runtime)
	}
	return b.String()
}
