package run

import (
	"context"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/runner"
)

// fallbackOptions are the flags of run about the runtimes that are tried next.
type fallbackOptions struct {
	fallback, fallbackRest string
	afterChanges           bool
}

func (o *fallbackOptions) flags(prog *cmdline.Program) []urfave.Flag {
	return []urfave.Flag{
		cmdline.Option("fallback", "try the runtimes of `LIST`, separated by commas, where the first cannot work now; none to try none", &o.fallback).Of(func() []string { return append(prog.Stored.Registry.Tokens(), runner.NoFallback) }),
		cmdline.Toggle("fallback-after-changes", "try the next runtime also when something may have been changed", &o.afterChanges),
		cmdline.Option("fallback-rest", "leave a runtime that failed so out for `DURATION`, 0 for not at all (default: 15m or 5m)", &o.fallbackRest),
	}
}

// withFallback returns r with what the flags and defaults say of other runtimes.
func withFallback(prog *cmdline.Program, ctx context.Context, r *runner.Runner, o *fallbackOptions, req agent.Request) (*fallback.Chain, error) {
	chain := &fallback.Chain{Runner: r, AfterChanges: o.afterChanges}
	if o.fallbackRest != "" {
		rest, err := time.ParseDuration(o.fallbackRest)
		switch {
		case err != nil || rest < 0:
			return nil, agent.Usagef("--fallback-rest: %q is no duration such as 30s, 5m or 1h30m, and not 0", o.fallbackRest)
		case rest == 0:
			rest = -1
		}
		chain.Cooldown = rest
	}
	if o.fallback != "" {
		for token := range strings.SplitSeq(o.fallback, ",") {
			chain.Runtimes = append(chain.Runtimes, strings.TrimSpace(token))
		}
	}
	list, err := r.Fallback(ctx, chain.Runtimes)
	switch {
	case err != nil:
		return nil, err
	case len(list.Value) == 0 || o.fallback == "":
	case req.Resume != "" || req.Continue:
		return nil, agent.Usagef("--fallback needs a new session; leave it or --resume and --continue out")
	case len(req.Args) > 0:
		return nil, agent.Usagef("the arguments after -- are for one CLI; leave them or --fallback out")
	}
	return chain, nil
}

// candidateLines says of each runtime whether it would be tried.
func candidateLines(list []fallback.Candidate) []string {
	var lines []string
	for _, c := range list {
		line := c.Runtime
		if line == "" {
			line = "the first available"
		}
		if c.Skipped != "" {
			line += ": " + cmdline.OneWord(c.Skipped) + "; it is skipped"
		}
		lines = append(lines, line)
	}
	return lines
}
