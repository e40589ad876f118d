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

// An Enforcer runs agents whose answers follow a schema. Next and Schema are required.
// Its methods may be called by several goroutines at once while its fields do not
// change.
type Enforcer struct {
	// Next makes the runs: a *runner.Runner, or a *fallback.Chain to try other
	// runtimes.
	Next interface {
		Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error)
	}

	// Schema is the schema of the answers.
	Schema *Schema

	// Timeout bounds both turns and the checks of both answers together if
	// Request.Timeout is zero. If both are zero, each turn has the configured
	// default. A check never takes more than 30 seconds, and always gets one.
	Timeout time.Duration

	// Environ is the environment whose secrets are masked in violations, which quote
	// the answer, together with those of Request.Env. Nil is the environment of this
	// process. See runner.Mask.
	Environ []string

	// Warn, if not nil, receives one line before the agent is asked again. The line
	// is in Result.Warnings too.
	Warn func(string)
}

// An InvalidError says why an answer does not follow the schema.
type InvalidError struct {
	Violations Violations // not empty
	Repaired   bool       // the answer is the second one
}

func (e *InvalidError) Error() string {
	if e.Repaired {
		return "the answer does not follow the schema, still invalid after one retry: " + e.Violations.Error()
	}
	return "the answer does not follow the schema: " + e.Violations.Error()
}

// Run runs one agent to its end, as Next does, checks its answer and asks once more
// if that is invalid; see the package documentation. Request.Schema is empty or equal
// to Schema.
//
// Result.Text is the JSON value alone. If no answer follows the schema, the error is
// an [*InvalidError] in an agent.ErrAgent, and Result.Text is the last answer. Next
// checks each answer by Output.Check, so that a recorder gets the same error. Usage,
// Duration and Warnings cover both turns; all other fields are those of the last one.
// A check that ctx or the time limit ends is an agent.ErrCanceled or agent.ErrTimeout
// error with the answer in Result.Text. One that takes too many steps is an
// agent.ErrAgent error. Started is called for each turn; Events, Stdout, Stderr and Text
// continue with the second one, whose Request.Labels.Previous is the ID of the first.
func (r *Enforcer) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	if len(req.Schema) > 0 && !bytes.Equal(req.Schema, r.Schema.JSON()) {
		err := agent.Usagef("Request.Schema is not the schema of the Enforcer; nothing was started")
		return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
	}
	req.Schema = r.Schema.JSON()
	limit := cmp.Or(req.Timeout, r.Timeout)
	req.Timeout = limit
	i := &inspection{schema: r.Schema, mask: r.mask(&req), begun: time.Now(), limit: limit}
	result, err := r.turn(ctx, req, out, i)
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok || result.TextTruncated {
		return result, err
	}
	if limit > 0 {
		if limit -= time.Since(i.begun); limit <= 0 {
			return result, failed(&result, fmt.Errorf("%w; no time left to ask again", invalid))
		}
		req.Timeout = limit
	}
	asks := invalid.Error() + "; asking once more"
	if r.Warn != nil {
		r.Warn(asks)
	}
	result.Warnings = append(slices.Clone(result.Warnings), asks)
	i.repaired = true
	second, err := r.repair(ctx, req, out, i, &result, invalid)
	merge(&second, &result, req)
	if err == nil {
		return second, nil
	}
	if _, again := errors.AsType[*InvalidError](err); again {
		return second, err
	}
	second.Text = cmp.Or(second.Text, result.Text)
	return second, repairFailed(err, invalid)
}

// turn makes a run whose answer is checked before the end of the run is recorded.
func (r *Enforcer) turn(ctx context.Context, req agent.Request, out agent.Output, i *inspection) (agent.Result, error) {
	checked, also := false, out.Check
	out.Check = func(ctx context.Context, result *agent.Result) error {
		checked = true
		if err := i.check(ctx, result); err != nil || also == nil {
			return err
		}
		return also(ctx, result)
	}
	result, err := r.Next.Run(ctx, req, out)
	if err == nil && !checked { // Next does not know Output.Check
		err = out.Check(ctx, &result)
	}
	return result, err
}

// repair asks the agent again, in the session of the first turn if the runtime can
// resume it.
func (r *Enforcer) repair(ctx context.Context, first agent.Request, out agent.Output, i *inspection, result *agent.Result, invalid *InvalidError) (agent.Result, error) {
	req := first
	req.Runtime = cmp.Or(result.Runtime, first.Runtime)
	if len(result.Attempts) > 0 {
		req.Model = runner.DefaultModel // the model of req was for another runtime
	}
	req.Template, req.Vars, req.Continue = "", nil, false
	req.Labels.Previous = cmp.Or(result.RunID, first.Labels.Previous)
	if result.SessionID != "" {
		req.Resume, req.Prompt = result.SessionID, again(invalid)
		req.Attachments = nil // the session has them
		second, err := r.turn(ctx, req, out, i)
		// A usage error: the runtime cannot resume this session; nothing was started.
		if !errors.Is(err, agent.ErrUsage) {
			return second, err
		}
	}
	prompt, err := anew(first, result.Text, invalid)
	if err != nil {
		return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
	}
	req.Resume, req.Continue, req.Prompt = first.Resume, first.Continue, prompt
	req.Attachments = first.Attachments
	return r.turn(ctx, req, out, i)
}

// failed returns err as the error of a run whose agent succeeded.
func failed(result *agent.Result, err error) error {
	return &agent.Error{Kind: agent.ErrAgent, Runtime: result.Runtime, Err: err}
}

// repairFailed returns the error of a second turn with the reason for that turn. A
// usage error becomes an agent.ErrAgent: the first turn has run.
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

// A repairError is the error of a second turn. It matches the errors of both turns.
type repairError struct {
	invalid *InvalidError
	cause   error
}

func (e *repairError) Error() string {
	return e.invalid.Error() + "; asking again failed: " + e.cause.Error()
}

func (e *repairError) Unwrap() []error { return []error{e.invalid, e.cause} }

// merge adds the result of the first turn to that of the second.
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

// sum returns the usage of both turns. A cumulative usage of the second turn includes
// the first if both have one session. Fresh means that the session began with the
// first turn.
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
		Context:    b.Context, ContextSize: b.ContextSize,
	}
	if a.CostUSD != nil && b.CostUSD != nil {
		cost := *a.CostUSD + *b.CostUSD
		u.CostUSD = &cost
	}
	return &u
}
