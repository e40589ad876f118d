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
	// minCheck is for an answer that came when its time was all but over.
	minCheck = time.Second
)

// An inspection checks the answers of one run, within bounds of time: the validator knows
// none.
type inspection struct {
	schema *Schema
	mask   func(string) string
	begun  time.Time     // of the run
	limit  time.Duration // of the run with its checks; 0 when there is none
}

// mask returns what hides the secrets of a run.
func (r *Enforcer) mask(req *agent.Request) func(string) string {
	environ := r.Environ
	if environ == nil {
		environ = os.Environ()
	}
	environ = slices.Concat(environ, req.Env)
	return runner.NewMasker(environ).Text
}

// answer puts the value of the answer in its place, or says what is wrong with it.
// The error says why that could not be told.
func (i *inspection) answer(ctx context.Context, result *agent.Result) (*InvalidError, error) {
	if result.TextTruncated {
		return &InvalidError{Words: "it is too long, its middle is missing"}, nil
	}
	type verdict struct {
		value json.RawMessage
		err   error
	}
	done := make(chan verdict, 1) // nobody may be there to take it
	text := result.Text
	go func() {
		value, err := i.schema.check(text, i.mask)
		done <- verdict{value, err}
	}()
	bound := i.bound()
	over := time.NewTimer(bound)
	defer over.Stop()
	stop := func(kind, err error) (*InvalidError, error) {
		return nil, &agent.Error{Kind: kind, Runtime: result.Runtime, Err: err}
	}
	select {
	case v := <-done:
		if v.err != nil {
			return &InvalidError{Words: v.err.Error()}, nil
		}
		result.Text = string(v.value)
		return nil, nil
	case <-over.C:
		words := "the agent has answered, but its answer could not be checked with the schema within %v"
		if bound < maxCheck {
			return stop(agent.ErrTimeout, fmt.Errorf(words+", what was left of %v", bound.Round(time.Millisecond), i.limit))
		}
		return stop(agent.ErrTimeout, fmt.Errorf(words+", which is the most that a check has", bound))
	case <-ctx.Done():
		kind, cause := agent.ErrCanceled, context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			kind = agent.ErrTimeout
		}
		return stop(kind, fmt.Errorf("stopped while the answer was checked with the schema: %w", cause))
	}
}

// bound returns how long a check that begins now may take.
func (i *inspection) bound() time.Duration {
	if i.limit <= 0 {
		return maxCheck
	}
	return min(max(i.limit-time.Since(i.begun), minCheck), maxCheck)
}
