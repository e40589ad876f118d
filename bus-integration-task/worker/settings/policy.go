package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// MaxPolicy is the size of the largest policy file, in bytes.
const MaxPolicy = 64 << 10

// A Policy is a policy file: JSON whose fields are the policy fields of [Docs]. The zero
// value sets nothing. It is immutable.
type Policy struct {
	values map[string]string // texts by field
}

// ReadPolicy reads a policy file: a regular file of at most MaxPolicy bytes. All unknown
// fields are named in one error; a field that comes twice and a value that its setting
// does not allow are errors too. Errors are of kind agent.ErrUsage.
func ReadPolicy(name string) (Policy, error) {
	text, err := registry.ReadFile(name, MaxPolicy)
	if err != nil {
		return Policy{}, agent.Usagef("policy file: %v", err)
	}
	p, err := parsePolicy(text)
	if err != nil {
		return Policy{}, agent.Usagef("policy file %s: %v", quote(name), err)
	}
	return p, nil
}

func parsePolicy(text []byte) (Policy, error) {
	d := policyDecoder{Decoder: json.NewDecoder(bytes.NewReader(text)), values: map[string]string{}, seen: map[string]bool{}}
	d.UseNumber()
	if err := d.file(); err != nil {
		return Policy{}, err
	}
	for _, row := range table {
		if value, ok := d.values[row.policy]; ok {
			if err := row.assign(&Settings{}, value); err != nil {
				return Policy{}, fmt.Errorf("%s: %w", row.policy, err)
			}
		}
	}
	return Policy{d.values}, nil
}

type policyDecoder struct {
	*json.Decoder
	values  map[string]string
	seen    map[string]bool
	unknown []string
}

func (d *policyDecoder) file() error {
	begin, err := d.Token()
	if err != nil || begin != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	if err := d.object(""); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text follows the JSON object")
	}
	if len(d.unknown) > 0 {
		slices.Sort(d.unknown)
		return fmt.Errorf("unknown fields: %s; known are %s", strings.Join(d.unknown, ", "), strings.Join(policyFields(), ", "))
	}
	return nil
}

// object reads the members of an object whose fields begin with prefix.
func (d *policyDecoder) object(prefix string) error {
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return errors.New("it is not JSON")
		}
		if err := d.member(prefix + token.(string)); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("it is not JSON")
	}
	return nil
}

func (d *policyDecoder) member(field string) error {
	if d.seen[field] {
		return fmt.Errorf("the field %s comes twice", quote(field))
	}
	d.seen[field] = true
	at := slices.IndexFunc(table, func(r row) bool { return r.policy == field && field != "" })
	inside := slices.ContainsFunc(table, func(r row) bool { return strings.HasPrefix(r.policy, field+".") })
	if inside && !strings.Contains(field, ".") {
		if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
			return fmt.Errorf("%s: it is not an object", field)
		}
		return d.object(field + ".")
	}
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return errors.New("it is not JSON")
	}
	if at < 0 {
		d.unknown = append(d.unknown, quote(field))
		return nil
	}
	text, ok := scalar(raw, table[at].json)
	if !ok {
		return fmt.Errorf("%s: it is not %s", field, table[at].json)
	}
	d.values[field] = text
	return nil
}

// scalar returns the text of a JSON value of the wanted type.
func scalar(raw json.RawMessage, want jsonType) (text string, ok bool) {
	text = string(raw)
	switch want {
	case jsonBool:
		return text, text == "true" || text == "false"
	case jsonInteger:
		return text, strings.Trim(text, "-0123456789") == ""
	}
	return text, raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// policyFields returns the known fields, sorted.
func policyFields() []string {
	var fields []string
	for _, row := range table {
		if row.policy != "" {
			fields = append(fields, row.policy)
		}
	}
	slices.Sort(fields)
	return fields
}
