package structured

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// An Enforcer runs agents whose answers follow a schema. Its methods may be called by
// several goroutines at once as long as nobody changes its fields.
type Enforcer struct {
	// Next makes the runs: a *runner.Runner, or a *fallback.Chain to try other
	// runtimes.
	Next interface {
		Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error)
	}

	// Schema is what answers have to follow.
	Schema *Schema

	// Timeout bounds the first turn, the one that repairs its answer, and the checks
	// of both, together where Request.Timeout is zero. When it is zero too, each turn
	// has the configured default, and each check 30 seconds, which no check exceeds
	// anyway. An answer that came at the last moment is checked for a second.
	Timeout time.Duration

	// Environ is the environment whose secrets are masked in the words of the
	// validator, which quote the answer, besides those of Request.Env; nil is that
	// of this process. See runner.Mask.
	Environ []string

	// Warn receives one line when an answer does not follow the schema and the
	// agent is about to be asked again. It is in Result.Warnings too. Warn may be nil.
	Warn func(string)
}

// An InvalidError says why an answer does not follow the schema.
type InvalidError struct {
	// Words are those of the validator, one line.
	Words string
	// Repaired says that the agent was asked again and this is its second answer.
	Repaired bool
}

func (e *InvalidError) Error() string {
	if e.Repaired {
		return "the answer does not follow the schema, not after it was repaired either: " + e.Words
	}
	return "the answer does not follow the schema: " + e.Words
}

// Run runs one agent to its end, as Next does, and checks its answer; see the
// documentation of the package. Request.Schema is empty or the same
// as Schema.
//
// Result.Text is the JSON value alone. Where no answer follows the schema the error
// is an [*InvalidError] in an agent.ErrAgent, and Result.Text is what the agent
// answered last. Usage, Duration and Warnings are those of both turns, everything
// else is of the last. A check that ctx or the time ends is an agent.ErrCanceled or
// an agent.ErrTimeout, Result.Text is the answer then; what computes goes on in its
// goroutine until it is done. Started is called for each turn; Events, Stdout, Stderr and
// Text go on with what the agent says in the second. Request.Labels.Previous of the
// second is the ID of the first.
func (r *Enforcer) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	if len(req.Schema) > 0 && !bytes.Equal(req.Schema, r.Schema.JSON()) {
		err := agent.Usagef("Request.Schema is another schema than that of the Runner; nothing was started")
		return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
	}
	req.Schema = r.Schema.JSON()
	limit := cmp.Or(req.Timeout, r.Timeout)
	i := &inspection{schema: r.Schema, mask: r.mask(&req), begun: time.Now(), limit: limit}
	result, err := r.Next.Run(ctx, req, out)
	if err != nil {
		return result, err
	}
	invalid, err := i.answer(ctx, &result)
	if invalid == nil {
		return result, err
	}
	if limit > 0 {
		if limit -= time.Since(i.begun); limit <= 0 {
			return result, failed(&result, fmt.Errorf("%w; no time was left to ask again", invalid))
		}
		req.Timeout = limit
	}
	if result.TextTruncated {
		return result, failed(&result, invalid)
	}
	asks := invalid.Error() + "; asking once more"
	if r.Warn != nil {
		r.Warn(asks)
	}
	result.Warnings = append(slices.Clone(result.Warnings), asks)
	second, err := r.repair(ctx, req, out, &result, invalid)
	if err != nil {
		second.Text = cmp.Or(second.Text, result.Text)
		merge(&second, &result, req)
		return second, repairFailed(err, invalid)
	}
	again, err := i.answer(ctx, &second)
	merge(&second, &result, req)
	if again != nil {
		again.Repaired = true
		return second, failed(&second, again)
	}
	return second, err
}

// repair asks the agent again, in the session of the first run where that can be
// resumed.
func (r *Enforcer) repair(ctx context.Context, first agent.Request, out agent.Output, result *agent.Result, invalid *InvalidError) (agent.Result, error) {
	req := first
	req.Runtime = cmp.Or(result.Runtime, first.Runtime)
	if len(result.Attempts) > 0 {
		req.Model = runner.DefaultModel // the other was for the runtime which was to be first
	}
	req.Template, req.Vars, req.Continue = "", nil, false
	req.Labels.Previous = cmp.Or(result.RunID, first.Labels.Previous)
	if result.SessionID != "" {
		req.Resume, req.Prompt = result.SessionID, again(invalid)
		second, err := r.Next.Run(ctx, req, out)
		// The runtime cannot resume this session, and nothing was started.
		if !errors.Is(err, agent.ErrUsage) {
			return second, err
		}
	}
	prompt, err := anew(first, result.Text, invalid)
	if err != nil {
		return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
	}
	req.Resume, req.Continue, req.Prompt = first.Resume, first.Continue, prompt
	return r.Next.Run(ctx, req, out)
}

// failed returns err as the failure of a run whose agent did not fail.
func failed(result *agent.Result, err error) error {
	return &agent.Error{Kind: agent.ErrAgent, Runtime: result.Runtime, Err: err}
}

// repairFailed returns the failure of a second turn with the reason for it. One
// that nothing was started for is a failure of the agent too: the first has run.
func repairFailed(err error, invalid *InvalidError) error {
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		return err
	}
	kind, cause := e.Kind, e.Err
	if errors.Is(err, agent.ErrUsage) {
		kind, cause = agent.ErrAgent, errors.New(cause.Error())
	}
	return &agent.Error{Kind: kind, Runtime: e.Runtime, Err: &repairError{invalid: invalid, cause: cause}}
}

// A repairError is a second turn that failed. It matches what both turns ended with.
type repairError struct {
	invalid *InvalidError
	cause   error
}

func (e *repairError) Error() string {
	return e.invalid.Error() + "; asking again failed: " + e.cause.Error()
}

func (e *repairError) Unwrap() []error { return []error{e.invalid, e.cause} }

// merge adds to the result of the second turn what the first one was.
func merge(second, first *agent.Result, req agent.Request) {
	second.Usage = sum(first, second, req.Resume == "" && !req.Continue)
	second.Duration += first.Duration
	second.Repeated = second.Repeated || first.Repeated
	second.SessionID = cmp.Or(second.SessionID, first.SessionID)
	second.RunID = cmp.Or(second.RunID, first.RunID)
	second.Attempts = slices.Concat(first.Attempts, second.Attempts)
	warnings := slices.Clone(first.Warnings)
	for _, line := range second.Warnings {
		if !slices.Contains(warnings, line) {
			warnings = append(warnings, line)
		}
	}
	second.Warnings = warnings
}

// sum returns what both turns consumed. Numbers of the second turn that cover its
// whole session hold those of the first. fresh says that the session began with
// the first turn.
func sum(first, second *agent.Result, fresh bool) *agent.Usage {
	a, b := first.Usage, second.Usage
	switch {
	case b == nil:
		return a
	case b.Cumulative && second.SessionID == first.SessionID:
		u := *b
		u.Cumulative = !fresh
		return &u
	case a == nil:
		return b
	}
	u := agent.Usage{
		Input: a.Input + b.Input, Cached: a.Cached + b.Cached,
		Output: a.Output + b.Output, Reasoning: a.Reasoning + b.Reasoning,
		Cumulative: a.Cumulative || b.Cumulative,
	}
	if a.CostUSD != nil && b.CostUSD != nil {
		cost := *a.CostUSD + *b.CostUSD
		u.CostUSD = &cost
	}
	return &u
}
