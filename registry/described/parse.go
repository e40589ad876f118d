package described

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
)

// member is one member of an object of a definition in JSON.
type member struct {
	name   string
	target any    // what it is decoded into
	form   string // what it has to be
}

// An invalid is an error in an object of a definition.
type invalid struct{ error }

func (d *Definition) members() []member {
	return []member{
		{"name", &d.Name, "a string"},
		{"executables", &d.Executables, "a list of strings"},
		{"install_url", &d.InstallURL, "a string"},
		{"token_env", &d.TokenEnv, "a list of strings"},
		{"args", &d.Args, "a list of strings and lists of strings"},
		{"prompt", &d.Prompt, "a string"},
		{"output", &d.Output, "a string"},
		{"access", &d.Access, "an object of lists of strings and of objects"},
		{"efforts", &d.Efforts, "an object of lists of strings and of objects"},
		{"continue", &d.Continue, "a list of strings and lists of strings"},
		{"acp", &d.ACP, "an object"},
		{"failures", &d.Failures, "a list of objects"},
		{"silence_fails", &d.SilenceFails, "true or false"},
		{"instructions", &d.Instructions, "a string"},
		{"slash_commands", &d.SlashCommands, "true or false"},
		{"executed", &d.Executed, "a list of strings"},
		{"reads", &d.Reads, "a list of strings"},
		{"home", &d.Home, "an object"},
		{"env", &d.Env, "an object of strings and nulls"},
	}
}

// UnmarshalJSON accepts both forms.
func (s *Setting) UnmarshalJSON(raw []byte) error {
	*s = Setting{}
	if raw[0] == '[' {
		return json.Unmarshal(raw, &s.Args)
	}
	return parseObject(raw, []member{
		{"args", &s.Args, "a list of strings and lists of strings"},
		{"env", &s.Env, "an object of strings and nulls"},
		{"files", &s.Files, "an object of strings"},
		{"mode", &s.Mode, "a string"},
		{"accept_edits", &s.AcceptEdits, "true or false"},
		{"option", &s.Option, "a string"},
	})
}

// MarshalJSON returns the shorter of the two forms.
func (s Setting) MarshalJSON() ([]byte, error) {
	if s.Env == nil && s.Files == nil && s.Mode == "" && !s.AcceptEdits && s.Option == "" {
		return json.Marshal(append([]Argument{}, s.Args...))
	}
	type object Setting // without methods
	return json.Marshal(object(s))
}

// UnmarshalJSON accepts an object without unknown or repeated members.
func (a *ACP) UnmarshalJSON(raw []byte) error {
	*a = ACP{}
	return parseObject(raw, []member{
		{"args", &a.Args, "a list of strings and lists of strings"},
		{"access", &a.Access, "an object of lists of strings and of objects"},
		{"efforts", &a.Efforts, "an object of lists of strings and of objects"},
		{"authenticate", &a.Authenticate, "a string"},
		{"models", &a.Models, "true or false"},
		{"meta", &a.Meta, "an object"},
	})
}

// UnmarshalJSON accepts an object without unknown or repeated members.
func (f *Failure) UnmarshalJSON(raw []byte) error {
	*f = Failure{}
	return parseObject(raw, []member{
		{"kind", &f.Kind, "a string"},
		{"exit_codes", &f.ExitCodes, "a list of numbers"},
		{"contains", &f.Contains, "a list of strings"},
		{"answers", &f.Answers, "a list of strings"},
	})
}

// UnmarshalJSON accepts an object without unknown or repeated members.
func (h *Home) UnmarshalJSON(raw []byte) error {
	*h = Home{}
	return parseObject(raw, []member{
		{"env", &h.Env, "a string"},
		{"folder", &h.Folder, "a string"},
		{"logins", &h.Logins, "a list of strings"},
		{"files", &h.Files, "an object of strings"},
		{"sessions", &h.Sessions, "a list of strings"},
	})
}

// parseDefinition reads the JSON form. It is stricter than encoding/json: it refuses
// unknown and repeated members, names in another case, and null.
func parseDefinition(raw []byte) (Definition, error) {
	var d Definition
	switch {
	case len(raw) > MaxBytes:
		return d, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), MaxBytes)
	case !utf8.Valid(raw):
		return d, errors.New("it is not valid UTF-8")
	}
	return d, parseObject(raw, d.members())
}

// parseObject reads an object with these members.
func parseObject(raw []byte, members []member) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil {
		return notJSON(err)
	}
	if open != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	var seen []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return notJSON(err)
		}
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		switch {
		case i < 0:
			return invalid{fmt.Errorf("unknown member %q (known: %s)", name, memberNames(members))}
		case slices.Contains(seen, name):
			return invalid{fmt.Errorf("member %q is repeated", name)}
		}
		if err := decodeMember(value, members[i].target); err != nil {
			if inner, ok := errors.AsType[invalid](err); ok {
				return invalid{fmt.Errorf("%s: %w", name, inner.error)}
			}
			return invalid{fmt.Errorf("member %q is not %s", name, members[i].form)}
		}
		seen = append(seen, name)
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

func memberNames(members []member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

var errForm = errors.New("it has another form")

// decodeMember decodes value into target. It refuses null, which encoding/json would
// skip, and repeated keys.
func decodeMember(value json.RawMessage, target any) error {
	if string(value) == "null" {
		return errForm
	}
	switch target := target.(type) {
	case *[]string:
		return decodeList(value, target)
	case *[]int:
		return decodeList(value, target)
	case *[]Failure:
		return decodeList(value, target)
	case *map[agent.Access]Setting:
		return decodeMap(value, target)
	case *map[agent.ReasoningEffort]Setting:
		return decodeMap(value, target)
	case *map[string]string:
		return decodeMap(value, target)
	case *map[string]*string, *map[string]json.RawMessage:
		if !uniqueKeys(value) {
			return errForm
		}
	}
	return json.Unmarshal(value, target)
}

// decodeList decodes a list without nulls.
func decodeList[T any](value json.RawMessage, target *[]T) error {
	var list []*T
	if err := json.Unmarshal(value, &list); err != nil {
		return err
	}
	for _, element := range list {
		if element == nil {
			return errForm
		}
		*target = append(*target, *element)
	}
	return nil
}

// decodeMap decodes an object without nulls.
func decodeMap[K ~string, T any](value json.RawMessage, target *map[K]T) error {
	var object map[K]*T
	if err := json.Unmarshal(value, &object); err != nil {
		return err
	}
	if !uniqueKeys(value) {
		return errForm
	}
	*target = make(map[K]T, len(object))
	for key, element := range object {
		if element == nil {
			return errForm
		}
		(*target)[key] = *element
	}
	return nil
}

// uniqueKeys reports whether value, which is valid JSON, is an object that repeats no key.
func uniqueKeys(value json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(value))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok || seen[name] || dec.Decode(new(json.RawMessage)) != nil {
			return false
		}
		seen[name] = true
	}
	return true
}
