package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// MaxSchema is the longest schema [Compile] takes, in bytes.
const MaxSchema = 1 << 20

// A Schema is a compiled JSON Schema. It may be used by several goroutines at once.
type Schema struct {
	source   json.RawMessage
	validate func(value any) error
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
	if err := check(v); err != nil {
		return nil, agent.Usagef("the schema: %w", err)
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(schema, s); err != nil {
		return nil, agent.Usagef("the schema: %s", words(err.Error()))
	}
	s.ID = "" // nothing refers to it
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{Loader: loadNothing})
	if err != nil {
		return nil, agent.Usagef("the schema: %s", words(err.Error()))
	}
	return &Schema{source: append(json.RawMessage(nil), schema...), validate: resolved.Validate}, nil
}

// loadNothing keeps the validator from reading files and addresses that a schema
// names.
func loadNothing(uri *url.URL) (*jsonschema.Schema, error) {
	return nil, fmt.Errorf("%s is outside the schema, and nothing outside is read", uri)
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
// follows the schema. The package documentation defines the value of an answer.
// Check has no time limit; an [Enforcer] has one.
func (s *Schema) Check(text string) (json.RawMessage, error) {
	return s.check(text, func(words string) string { return words })
}

// check is Check with an error that mask has removed secrets from before it is cut.
func (s *Schema) check(text string, mask func(string) string) (json.RawMessage, error) {
	a, err := extract(text)
	if err == nil {
		err = a.flaw
	}
	if err == nil {
		err = s.validate(native(a.value))
	}
	if err != nil {
		return nil, errors.New(words(mask(err.Error())))
	}
	return json.RawMessage(a.text), nil
}

// maxWords bounds the validator's message, in bytes.
const maxWords = 600

// words returns the validator's message as one printable line.
func words(text string) string {
	text = strings.Join(strings.Fields(formatters.SanitizeString(shorten(text, 8*maxWords))), " ")
	for _, noise := range []string{"validating root: ", "validating ", "jsonschema.Schema: ", "jsonschema: ", "<anonymous schema>: "} {
		text = strings.ReplaceAll(text, noise, "")
	}
	text = strings.ReplaceAll(text, "<anonymous schema>", "a schema")
	text = wayThere().ReplaceAllString(text, "$1")
	return shorten(text, maxWords)
}

// wayThere matches the pointers before the last one.
var wayThere = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:/\S*: )+(/\S*: )`) })
