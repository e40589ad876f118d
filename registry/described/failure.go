package described

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// checkFailures returns what is wrong with the failures of d.
func (d *Definition) checkFailures() error {
	for i, f := range d.Failures {
		if err := f.check(); err != nil {
			return fmt.Errorf("failures[%d]: %w", i, err)
		}
	}
	return nil
}

func (f *Failure) check() error {
	kinds := []agent.Failure{agent.FailureAuthentication, agent.FailureQuota, agent.FailureIdleTimeout}
	switch signs := len(f.ExitCodes) + len(f.Contains); {
	case f.Kind != "" && !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("kind: %q is not one of %s", f.Kind, joinWords(kinds))
	case f.Kind == "" && signs > 0:
		return fmt.Errorf("kind is missing: one of %s", joinWords(kinds))
	case signs+len(f.Answers) == 0:
		return errors.New("it has neither exit_codes nor contains nor answers")
	case slices.ContainsFunc(f.ExitCodes, func(code int) bool { return code < 1 || code > 255 }):
		return errors.New("exit_codes: a failure has an exit code from 1 to 255")
	case slices.ContainsFunc(slices.Concat(f.Contains, f.Answers), blank):
		return errors.New("a text of contains or answers is empty")
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// failure returns the class of the first of d's failures that is shown.
func (d *Definition) failure(code int, texts ...string) agent.Failure {
	for i, text := range texts {
		texts[i] = lower(text)
	}
	for _, f := range d.Failures {
		if slices.Contains(f.ExitCodes, code) {
			return f.Kind
		}
		for _, sign := range f.Contains {
			sign = lower(sign)
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, sign) }) {
				return f.Kind
			}
		}
	}
	return ""
}

// lower returns s with lower-case ASCII letters.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}, s)
}

// exitFailure returns a function for registry.Runtime.ExitFailure that asks d's failures
// first, then next.
func (d *Definition) exitFailure(next func(*agent.ExitError) agent.Failure) func(*agent.ExitError) agent.Failure {
	if len(d.Failures) == 0 {
		return next
	}
	return func(exit *agent.ExitError) agent.Failure {
		failure := d.failure(exit.Code, exit.Reason, exit.Stderr)
		if failure == "" && next != nil {
			failure = next(exit)
		}
		return failure
	}
}

// answerFailure returns the function for registry.Runtime.AnswerFailure; nil if every
// answer is the model's.
func (d *Definition) answerFailure() func(string) (agent.Failure, bool) {
	answers := slices.ContainsFunc(d.Failures, func(f Failure) bool { return len(f.Answers) > 0 })
	if !answers && !d.SilenceFails {
		return nil
	}
	return func(answer string) (agent.Failure, bool) {
		answer = strings.TrimSpace(answer)
		for _, f := range d.Failures {
			if slices.ContainsFunc(f.Answers, func(text string) bool { return strings.HasPrefix(answer, text) }) {
				return f.Kind, true
			}
		}
		return "", d.SilenceFails && answer == ""
	}
}
