package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
)

// findResting adds what rests, of the runtimes that names names, or of all where
// there are none. What cannot be read is a warning.
func (inv *invocation) findResting(report *doctorReport, names []string) {
	report.Resting = []fallback.Cooldown{}
	store, err := inv.restStore()
	if err != nil {
		return // nothing can rest
	}
	list, err := store.List(time.Now())
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			inv.screen.warn(line + "; nobody rests because of it")
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

func (inv *invocation) restStore() (*fallback.Cooldowns, error) {
	dir, err := fallback.DefaultDir(inv.env.Environ)
	if err != nil {
		return nil, err
	}
	return fallback.NewCooldowns(dir), nil
}

// wake ends the rest of a runtime.
func (inv *invocation) wake(token string) error {
	if _, _, err := inv.stored.registry.ParseToken(token); err != nil {
		return agent.Usagef("--wake: %w", err)
	}
	report := doctorReport{Woken: []string{}}
	store, err := inv.restStore()
	if err == nil {
		var woken bool
		if woken, err = store.Clear(token); woken {
			report.Woken = append(report.Woken, token)
		}
	}
	if err != nil {
		return &failure{text: token + " cannot be woken", err: cause(err)}
	}
	if inv.global.json() {
		return inv.out.printJSON(report)
	}
	if len(report.Woken) == 0 {
		return inv.out.print(token + " does not rest\n")
	}
	return inv.out.print(token + " rests no longer\n")
}

// restingText says what rests, for people.
func (r *doctorReport) restingText() string {
	if len(r.Resting) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("resting, for runs with --fallback\n")
	for _, rest := range r.Resting {
		fmt.Fprintf(&b, "  %-15s  note: %s: %s; end it with --wake %s\n", rest.Runtime, rest, oneWord(rest.Reason), rest.Runtime)
	}
	return b.String()
}
