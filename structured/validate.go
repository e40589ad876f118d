package structured

import (
	"fmt"
	"sync/atomic"
)

// maxSteps bounds the work of one check: the parts that are applied, the members and items
// of what they are applied to, and the violations that are kept.
const maxSteps = 5_000_000

var errSteps = fmt.Errorf("checking the answer takes more than %d steps; simplify the schema, or ask for a shorter answer", maxSteps)

// A budget is what one check may still do.
type budget struct {
	stopped atomic.Bool // another goroutine has given up the check
	left    int
}

func newBudget() *budget { return &budget{left: maxSteps} }

func (b *budget) spend(steps int) { b.left -= steps }

// isOver reports whether the check has to end. Its result means nothing then.
func (b *budget) isOver() bool { return b.left < 0 || b.stopped.Load() }

// steps is what applying a part to v costs.
func steps(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return 1 + len(v)
	case []any:
		return 1 + len(v)
	case string:
		return 1 + len(v)/100
	}
	return 1
}

// A rule checks a value against a keyword of a part, or against several that belong
// together.
type rule func(t *trial, v any, at *place)

// A trial is the application of a part to a value.
type trial struct {
	budget *budget
	// keep is how many violations are kept. With 0 only invalid counts, and the trial
	// ends at the first violation.
	keep       int
	invalid    bool
	violations []violation
	more       int   // violations that were not kept
	seen       *seen // nil: the schema does not ask
}

// How many violations of an answer, and of a branch of oneOf or anyOf, are kept.
const (
	maxViolations = 1000
	maxOfBranch   = 20
)

// apply tests v, which is at a place, against p.
func (t *trial) apply(p *part, v any, at *place, keep int) *trial {
	return p.apply(t.budget, v, at, keep)
}

func (p *part) apply(b *budget, v any, at *place, keep int) *trial {
	t := &trial{budget: b, keep: keep}
	b.spend(steps(v))
	if p.tracks {
		t.seen = &seen{}
	}
	for _, r := range p.rules {
		if b.isOver() {
			t.invalid = true // for the trials above to end
			break
		}
		if r(t, v, at); t.invalid && keep == 0 {
			break
		}
	}
	return t
}

// fail adds a violation.
func (t *trial) fail(at *place, format string, args ...any) { t.add(violation{at, format, args, nil}) }

func (t *trial) add(list ...violation) {
	t.invalid = t.invalid || len(list) > 0
	if t.keep == 0 {
		return
	}
	n := min(len(list), t.keep-len(t.violations))
	t.budget.spend(n)
	t.violations = append(t.violations, list[:n]...)
	t.more += len(list) - n
}

// require merges the result of a trial that has to succeed, of the same value or of a
// member or item of it.
func (t *trial) require(other *trial) {
	t.add(other.violations...)
	t.invalid = t.invalid || other.invalid
	t.more += other.more
}

// requireSame is require for a trial of the same value.
func (t *trial) requireSame(other *trial) {
	t.require(other)
	t.see(other) // even if it is invalid: then this only avoids further violations
}

// see adds what a trial of the same value has seen.
func (t *trial) see(other *trial) {
	t.budget.spend(other.seen.len())
	t.seen.merge(other.seen)
}

// seen are the members or items of a value that a part has evaluated; see
// unevaluatedProperties and unevaluatedItems. Its methods accept nil.
type seen struct {
	names map[string]bool
	items map[int]bool
}

func (s *seen) name(name string) {
	if s == nil {
		return
	}
	if s.names == nil {
		s.names = make(map[string]bool)
	}
	s.names[name] = true
}

func (s *seen) item(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = make(map[int]bool)
	}
	s.items[i] = true
}

func (s *seen) len() int {
	if s == nil {
		return 0
	}
	return len(s.names) + len(s.items)
}

// merge adds what a trial of the same value has seen.
func (s *seen) merge(other *seen) {
	if s == nil {
		return
	}
	for name := range other.names {
		s.name(name)
	}
	for i := range other.items {
		s.item(i)
	}
}

// An option is one of several schemas of which a value has to match one.
type option struct {
	schema *part
	label  string
}

// explain tests v against every option and returns the labels of those that match. If
// none does, it adds a violation with those of each option.
func (t *trial) explain(at *place, format string, options []option, v any) (valid []string) {
	var branches []branch
	for _, o := range options {
		tried := t.apply(o.schema, v, at, min(t.keep, maxOfBranch))
		if tried.invalid {
			branches = append(branches, branch{o.schema.label(o.label), tried})
			continue
		}
		valid = append(valid, o.schema.label(o.label))
		t.see(tried)
	}
	if valid == nil {
		t.add(violation{at, format, nil, branches})
		for _, b := range branches {
			t.see(b.tried)
		}
	}
	return valid
}
