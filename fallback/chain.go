package fallback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// A Chain runs agents with fallback. Its methods may be called by several
// goroutines at once while its fields do not change. Its zero value tries the
// runtimes that variables and preferences name.
type Chain struct {
	// Runner makes the runs. Nil is the zero runner.Runner.
	Runner *runner.Runner

	// Runtimes are the tokens of the runtimes that are tried, in order and each
	// once, after the one that the request names or the runner selects. Nil is the
	// list of runner.Runner.Fallback: the variable, then the preference.
	//
	// A runtime listed here that cannot do what the request wants is an
	// agent.ErrUsage error, before anything is started; one that a variable or
	// preference lists is skipped. Either is skipped when it is not installed or
	// disabled.
	Runtimes []string

	// AfterChanges tries another runtime even if the one before it may have
	// changed something.
	AfterChanges bool

	// Cooldown is how long a runtime is left out, MaxCooldown at most: zero means
	// QuotaCooldown and AuthenticationCooldown, a negative duration not at all.
	Cooldown time.Duration

	// Cooldowns stores the cooldowns; nil are those in DefaultDir.
	Cooldowns *Cooldowns

	// Warn receives each warning as one line, like runner.Runner.Warn, which it
	// defaults to.
	Warn func(string)

	now func() time.Time                                                                         // set by tests
	run func(context.Context, *runner.Runner, agent.Request, agent.Output) (agent.Result, error) // set by tests
}

// Run runs one agent to its end, as runner.Runner.Run does, and another one if that
// runtime could not work. Result and error are those of the last run; Result.Attempts
// has the runs before it and Result.Warnings the warnings of all. The context and
// Request.Timeout bound all runs together.
//
// Started is called for each run; Events, Stdout, Stderr and Text continue with the
// output of the next agent. Request.Labels.Previous of each run is the ID of the one
// before.
//
// A request with Resume, Continue, Args, AllowTools or DenyTools is for one runtime and
// runs without fallback.
func (f *Chain) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	c := f.newCall()
	all, err := c.settle(ctx, req)
	switch {
	case err != nil:
		return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
	case all != nil:
		return c.tryAll(ctx, all, out)
	}
	result, err := c.start(ctx, c.loud, req, out)
	if c.tied == "" || !c.fallsBack(err) {
		return result, err
	}
	c.warnings = slices.Clone(result.Warnings)
	c.warn("no other runtime is tried, because " + c.tied)
	return c.finish(result), err
}

// settle returns what may be tried for req; nil if it runs without fallback. It
// reports every error of the request.
func (c *call) settle(ctx context.Context, req agent.Request) (candidates, error) {
	asking := *c.loud
	asking.Warn = c.warn
	list := asking.Fallback(ctx, c.f.Runtimes)
	switch {
	case list.Err != nil && c.f.Runtimes != nil:
		return nil, agent.Usagef("fallback list: %w", list.Err)
	case list.Err != nil || len(list.Value) == 0:
		return nil, list.Err
	}
	if c.tied = tied(req); c.tied != "" {
		return nil, nil
	}
	all, err := c.candidates(ctx, req, list)
	if err != nil {
		return nil, err
	}
	c.readCooldowns(all)
	return all, nil
}

// tied returns why no other runtime can take the request over.
func tied(req agent.Request) string {
	switch {
	case req.Resume != "" || req.Continue:
		return "it would not know the session"
	case len(req.Args) > 0:
		return "the arguments of the request are for one CLI"
	case len(req.AllowTools)+len(req.DenyTools) > 0:
		return "the names of tools in the request are those of one CLI"
	}
	return ""
}

// call is one call of Run.
type call struct {
	f         *Chain
	loud      *runner.Runner // as it was given
	quiet     *runner.Runner // for looking ahead
	cooldowns *Cooldowns     // nil: they are off
	tied      string         // why the request is for one runtime

	begun    time.Time     // of the first run
	limit    time.Duration // of all runs together
	attempts []agent.Attempt
	warnings []string
}

func (f *Chain) newCall() *call {
	c := &call{f: f, loud: f.Runner}
	if c.loud == nil {
		c.loud = new(runner.Runner)
	}
	quiet := *c.loud
	quiet.Warn = func(string) {} // the run warns
	c.quiet = &quiet
	return c
}

func (c *call) now() time.Time {
	if c.f.now != nil {
		return c.f.now()
	}
	return time.Now()
}

func (c *call) start(ctx context.Context, r *runner.Runner, req agent.Request, out agent.Output) (agent.Result, error) {
	if c.f.run != nil {
		return c.f.run(ctx, r, req, out)
	}
	return r.Run(ctx, req, out)
}

// fallsBack reports whether another runtime may do better after err.
func (c *call) fallsBack(err error) bool {
	return errors.Is(err, agent.ErrQuota) || errors.Is(err, agent.ErrAuthentication) || c.missing(err)
}

// missing reports whether err means that there was no CLI to start.
func (c *call) missing(err error) bool {
	return errors.Is(err, agent.ErrNotInstalled) ||
		errors.Is(err, agent.ErrNoneAvailable) && !c.loud.RequireConfigured // which wants one to be named
}

// tryAll runs one candidate after the other until one settles it.
func (c *call) tryAll(ctx context.Context, all candidates, out agent.Output) (result agent.Result, err error) {
	if g, ok := c.loud.Recorder.(agent.GroupRecorder); ok {
		var end func(agent.Result, error)
		ctx, end = g.Group(ctx, c.environ(all[0].req))
		defer func() { end(result, err) }()
	}
	at, skipped := all.next(-1)
	c.warnAll(skipped)
	c.leaveOut(all[:at])
	previous := all[at].req.Labels.Previous
	c.begun = c.now()
	for {
		now := &all[at]
		req := now.req
		req.Labels.Previous = previous
		if at > 0 {
			req.Timeout = max(c.left(), 1) // zero would mean the default
		}
		next, skipped := all.next(at)
		watched, w := out, watch{reading: now.reading, next: out.Events}
		if next >= 0 && !c.f.AfterChanges && !confined(ctx, req, now.runner.Preferences) {
			watched.Events = w.event
		}
		result, err := c.start(ctx, now.runner, req, watched)
		c.warnings = append(c.warnings, result.Warnings...)
		c.remember(now.token, err)
		if !c.continues(ctx, err, &w, all, next, skipped) {
			return c.finish(result), err
		}
		c.attempts = append(c.attempts, agent.Attempt{
			Runtime: cmp.Or(result.Runtime, now.token), Model: result.Model, Kind: agent.KindOf(err), Error: err.Error(),
			RunID: result.RunID, Usage: result.Usage, Duration: result.Duration,
		})
		c.leaveOut(all[at+1 : next])
		previous = cmp.Or(result.RunID, previous)
		at = next
	}
}

// environ returns the environment that the request gives to every agent.
func (c *call) environ(req agent.Request) []string {
	environ := c.loud.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return slices.Concat(environ, req.Env)
}

// leaveOut records the candidates that were skipped.
func (c *call) leaveOut(list candidates) {
	for _, one := range list {
		kind := agent.KindOf(agent.ErrNotInstalled)
		if one.problem == "" {
			kind = one.cooldown.Kind
		}
		c.attempts = append(c.attempts, agent.Attempt{Runtime: one.token, Kind: kind, Error: one.token + " " + one.skipped(true)})
	}
}

// continues reports whether the candidate at next is to be tried after a run that
// ended with err, and warns why or why not.
func (c *call) continues(ctx context.Context, err error, w *watch, all candidates, next int, skipped []string) bool {
	switch {
	case err == nil || !c.fallsBack(err) || context.Cause(ctx) != nil:
		return false
	case next < 0:
		c.warnAll(skipped)
		return false
	case w.changed != "":
		c.warn(fmt.Sprintf("no other runtime is tried, because the agent may have changed something (%s)", w.changed))
		return false
	case c.left() <= 0:
		c.warn(fmt.Sprintf("no other runtime is tried, because the timeout of %v is used up", c.limit))
		return false
	}
	c.warn(fmt.Sprintf("%s; trying %s", describe(err), all[next].token))
	c.warnAll(skipped)
	return true
}

// left returns the time left for all runs.
func (c *call) left() time.Duration {
	left := c.limit - c.now().Sub(c.begun)
	if left > time.Second {
		left = left.Truncate(100 * time.Millisecond) // it is in errors
	}
	return left
}

// finish completes the result of the last run.
func (c *call) finish(result agent.Result) agent.Result {
	result.Attempts, result.Warnings = c.attempts, nil
	for _, line := range c.warnings {
		if !slices.Contains(result.Warnings, line) {
			result.Warnings = append(result.Warnings, line)
		}
	}
	return result
}

// warn gives one line to the caller and to Result.Warnings.
func (c *call) warn(line string) {
	line = oneLine(line)
	c.warnings = append(c.warnings, line)
	switch {
	case c.f.Warn != nil:
		c.f.Warn(line)
	case c.loud.Warn != nil:
		c.loud.Warn(line)
	default:
		fmt.Fprintf(os.Stderr, "bus-agent: %s\n", line)
	}
}

func (c *call) warnAll(lines []string) {
	for _, line := range lines {
		c.warn(line)
	}
}
