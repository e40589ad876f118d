package structured

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// MaxSchema is the longest schema [Compile] takes, in bytes.
const MaxSchema = 1 << 20

// A Schema is a compiled JSON Schema. It may be used by several goroutines at once.
type Schema struct {
	source json.RawMessage
	// validate returns the violations of a value, with the secrets that mask knows
	// removed. They mean nothing if the budget is over.
	validate func(b *budget, value any, mask func(string) string) Violations
}

// Compile reads a JSON Schema of the draft that its $schema names, 2020-12 or
// draft-07; the default is 2020-12. The schema is an object, and nothing outside it
// is read: a $ref is "#", or "#/" and a path in it. A schema that cannot be used is
// an agent.ErrUsage error with the reason and the position.
func Compile(schema []byte) (*Schema, error) {
	switch {
	case len(schema) > MaxSchema:
		return nil, agent.Usagef("the schema is %d bytes, more than %d", len(schema), MaxSchema)
	case !utf8.Valid(schema):
		return nil, agent.Usagef("the schema is not valid UTF-8")
	}
	v, p, err := parse(string(schema))
	if err == nil {
		err = p.flaw
	} else {
		err = fmt.Errorf("%s: %w", position(p.text, p.at), err)
	}
	if err != nil {
		return nil, agent.Usagef("the schema: %w", err)
	}
	root, err := compile(v)
	if err != nil {
		return nil, agent.Usagef("the schema: %s", words(err.Error(), maxWords))
	}
	return &Schema{source: slices.Clone(schema), validate: root.violations}, nil
}

// violations returns the violations of a value.
func (p *part) violations(b *budget, v any, mask func(string) string) Violations {
	t := p.apply(b, v, nil, maxViolations)
	if !t.invalid || b.isOver() {
		return nil
	}
	return printer{mask, b}.list(t, nil, maxShown)
}

// position returns the line and column of an offset.
func position(text string, at int) string {
	before := text[:min(at, len(text))]
	line := strings.Count(before, "\n")
	return fmt.Sprintf("line %d, column %d", line+1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])+1)
}

// JSON returns the schema as it was compiled.
func (s *Schema) JSON() json.RawMessage { return s.source }

// Check returns the JSON value of an agent's answer, as the agent wrote it, if it
// follows the schema. The package documentation defines the value of an answer. The
// error is of type [Violations], or another one if the check takes too many steps. Check
// has no time limit; an [Enforcer] has one.
func (s *Schema) Check(text string) (json.RawMessage, error) {
	value, violations, err := s.check(newBudget(), text, func(words string) string { return words })
	if violations != nil {
		return nil, violations
	}
	return value, err
}

// check is Check with violations that mask has removed secrets from. The error is errSteps.
func (s *Schema) check(b *budget, text string, mask func(string) string) (json.RawMessage, Violations, error) {
	a, err := extract(text)
	if err == nil {
		err = a.flaw
	}
	if err != nil {
		return nil, Violations{words(mask(err.Error()), maxWords)}, nil
	}
	violations := s.validate(b, a.value, mask)
	if b.isOver() {
		return nil, nil, errSteps
	}
	if violations != nil {
		return nil, violations, nil
	}
	return json.RawMessage(a.text), nil, nil
}

// words returns text as one printable line of at most size bytes.
func words(text string, size int) string {
	text = formatters.SanitizeString(shorten(text, 8*size))
	return shorten(strings.Join(strings.Fields(text), " "), size)
}
