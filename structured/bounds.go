package structured

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// Bounds of one check of an answer.
const (
	maxCheck = 30 * time.Second
	minCheck = time.Second // for an answer that came at the last moment
)

// An inspection checks the answers of one run within a time limit, which Schema.check
// does not have.
type inspection struct {
	schema *Schema
	mask   func(string) string
	begun  time.Time     // of the run
	limit  time.Duration // of the run with its checks; 0 when there is none

	repaired bool // the answer is the second one
}

// check is answer with one error.
func (i *inspection) check(ctx context.Context, result *agent.Result) error {
	invalid, err := i.answer(ctx, result)
	if invalid != nil {
		invalid.Repaired = i.repaired
		return failed(result, invalid)
	}
	return err
}

// mask returns the function that hides the secrets of a run.
func (r *Enforcer) mask(req *agent.Request) func(string) string {
	environ := r.Environ
	if environ == nil {
		environ = os.Environ()
	}
	environ = slices.Concat(environ, req.Env)
	return runner.NewMasker(environ).Text
}

// answer replaces the answer by its value, or returns its mistake. The error says why
// the check did not end.
func (i *inspection) answer(ctx context.Context, result *agent.Result) (*InvalidError, error) {
	if result.TextTruncated {
		return &InvalidError{Violations: Violations{"it is too long: its middle is missing"}}, nil
	}
	type verdict struct {
		value   json.RawMessage
		invalid Violations
		err     error
	}
	budget := newBudget()
	defer budget.stopped.Store(true) // ends a check that takes longer
	done := make(chan verdict, 1)    // the check can end after this function
	text := result.Text
	go func() {
		value, invalid, err := i.schema.check(budget, text, i.mask)
		done <- verdict{value, invalid, err}
	}()
	bound := i.bound()
	over := time.NewTimer(bound)
	defer over.Stop()
	stop := func(kind, err error) (*InvalidError, error) {
		return nil, &agent.Error{Kind: kind, Runtime: result.Runtime, Err: err}
	}
	select {
	case v := <-done:
		if v.invalid != nil {
			return &InvalidError{Violations: v.invalid}, nil
		}
		if v.err != nil {
			return stop(agent.ErrAgent, v.err)
		}
		result.Text = string(v.value)
		return nil, nil
	case <-over.C:
		words := "the agent answered, but the check of its answer took longer than %v"
		if bound < maxCheck {
			return stop(agent.ErrTimeout, fmt.Errorf(words+", the rest of the timeout of %v", bound.Round(time.Millisecond), i.limit))
		}
		return stop(agent.ErrTimeout, fmt.Errorf(words+", the limit of a check", bound))
	case <-ctx.Done():
		kind, cause := agent.ErrCanceled, context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			kind = agent.ErrTimeout
		}
		return stop(kind, fmt.Errorf("stopped during the check of the answer: %w", cause))
	}
}

// bound returns how long a check that begins now may take.
func (i *inspection) bound() time.Duration {
	if i.limit <= 0 {
		return maxCheck
	}
	return min(max(i.limit-time.Since(i.begun), minCheck), maxCheck)
}
