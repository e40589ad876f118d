package fallback

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/runner"
)

// candidate is one runtime that may be tried.
type candidate struct {
	token    string // of the first, empty where nothing is available
	runner   *runner.Runner
	req      agent.Request
	reading  []string // its tools that change nothing
	problem  string   // why it cannot be started
	cooldown *Cooldown
}

type candidates []candidate

// next returns the index of the candidate to try after that at i, -1 when none is
// left, and a warning for each one skipped. A candidate in cooldown is skipped while
// another is ready. The first is tried even if it cannot be started, because the
// runner's error says why.
func (all candidates) next(i int) (next int, skipped []string) {
	ready := all.ready()
	for i++; i < len(all); i++ {
		why := all[i].skipped(ready)
		if why == "" || i == 0 && all[i].problem != "" {
			return i, skipped
		}
		skipped = append(skipped, fmt.Sprintf("%s %s; it is skipped", all[i].token, why))
	}
	return -1, skipped
}

// ready reports whether one can be started and is not in cooldown.
func (all candidates) ready() bool {
	for _, c := range all {
		if c.problem == "" && c.cooldown == nil {
			return true
		}
	}
	return false
}

// skipped returns why the candidate is not tried, "" if it is; othersReady is the
// result of candidates.ready.
func (c *candidate) skipped(othersReady bool) string {
	switch {
	case c.problem != "":
		return oneLine(c.problem)
	case c.cooldown != nil && othersReady:
		return "is " + c.cooldown.String()
	}
	return ""
}

// candidates returns what may be tried for req, the request's own runtime first. It
// reports every error of the request before anything is started.
func (c *call) candidates(ctx context.Context, req agent.Request, list runner.Setting[[]string]) (candidates, error) {
	first := candidate{token: req.Runtime, runner: c.loud, req: req}
	dry, err := c.quiet.DryRun(ctx, req)
	switch {
	case err == nil:
		first.token, first.reading = dry.Start.Runtime, dry.Selection.Runtime.ReadingTools
		c.limit = dry.Settings.Timeout.Value
	case c.missing(err):
		first.problem = "cannot be started: " + cause(err)
		if e, ok := errors.AsType[*agent.Error](err); ok && e.Runtime != "" {
			first.token = e.Runtime
		}
		timeout := c.quiet.Settings(ctx, "", req, "").Timeout
		if timeout.Err != nil {
			return nil, timeout.Err
		}
		c.limit = timeout.Value
	default:
		return nil, err
	}
	all := candidates{first}
	exact := exactly(c.loud)
	for _, token := range list.Value {
		if token == first.token {
			continue
		}
		next := candidate{token: token, runner: exact, req: req}
		next.req.Runtime, next.req.Model = token, ""
		if err := c.check(ctx, &next, list.Source); err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// check checks that the candidate can do what the request wants. Where it cannot, a
// candidate that a default named gets a problem; one that the call named is an error.
func (c *call) check(ctx context.Context, next *candidate, source string) error {
	quiet := *next.runner
	quiet.Warn = c.quiet.Warn
	dry, err := quiet.DryRun(ctx, next.req)
	switch {
	case err == nil:
		next.reading = dry.Selection.Runtime.ReadingTools
	case errors.Is(err, agent.ErrNoneAvailable):
		next.problem = "is disabled"
	case errors.Is(err, agent.ErrNotInstalled):
		next.problem = "cannot be started: " + cause(err)
	case !errors.Is(err, agent.ErrUsage):
		return err
	case source == runner.SourceCall:
		return agent.Usagef("fallback to %s: %s", next.token, cause(err))
	default:
		next.problem = "cannot take this run over: " + strings.TrimSuffix(cause(err), "; nothing was started")
	}
	return nil
}

// exactly returns a runner that runs the runtime of the request and selects no other.
// Of the default models it takes only those set for one runtime: the others were
// meant for the first candidate.
func exactly(r *runner.Runner) *runner.Runner {
	sources := runner.BusAgent()
	if r.Sources != nil {
		sources = *r.Sources
	}
	var models []runner.Source
	for _, s := range sources.Model {
		if s.Runtime != "" {
			models = append(models, s)
		}
	}
	sources.Runtime, sources.Model = nil, models
	exact := *r
	exact.Sources, exact.RequireConfigured = &sources, true
	return &exact
}

// cause returns the text of err without the runtime before it.
func cause(err error) string {
	if e, ok := errors.AsType[*agent.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// maxReason bounds what is quoted of an error, in bytes.
const maxReason = 300

// reason returns why a run failed, in one short line.
func reason(err error) string {
	text := oneLine(cause(err))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// describe returns the runtime, kind and reason of a failed run.
func describe(err error) string {
	e, ok := errors.AsType[*agent.Error](err)
	switch {
	case !ok || e.Runtime == "":
		return reason(err)
	case errors.Is(err, agent.ErrNotInstalled):
		return e.Runtime + ": " + reason(err)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Runtime, agent.KindOf(err), reason(err))
}

// oneLine returns text as one printable line.
func oneLine(text string) string {
	return strings.ReplaceAll(formatters.SanitizeString(text), "\n", " ")
}
