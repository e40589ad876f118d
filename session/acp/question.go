package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// form is what an agent asks the user: a field for each question. Without fields it asks
// for a yes or no.
type form struct {
	message string
	fields  []field
}

// field is a field of a form.
type field struct {
	name     string
	kind     string // string, boolean, integer, number or array
	question agent.Question
	values   []string // of the question's options
}

// formAnswer answers a form.
type formAnswer struct {
	Action  string                     `json:"action"`
	Content map[string]json.RawMessage `json:"content,omitempty"`
}

// Actions.
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// Options that stand for a value of another type.
const yes, no = "yes", "no"

// fieldSchema is the schema of a field.
type fieldSchema struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	Names       []string `json:"enumNames"`
	OneOf       []choice `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
		OneOf []choice `json:"oneOf"`
	} `json:"items"`
}

// choice is a value of a field, and how it is shown.
type choice struct {
	Value       string `json:"const"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// parseForm reads a form, with its fields in the order of the agent.
func parseForm(params json.RawMessage) (form, error) {
	var p struct {
		Message string `json:"message"`
		Mode    string `json:"mode"`
		Schema  struct {
			Properties json.RawMessage `json:"properties"`
			Required   []string        `json:"required"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return form{}, err
	}
	f := form{message: p.Message}
	if p.Mode != "" && p.Mode != "form" {
		return f, fmt.Errorf("elicitation mode %q was not offered", p.Mode)
	}
	err := eachMember(p.Schema.Properties, func(name string, value json.RawMessage) error {
		var schema fieldSchema
		if err := json.Unmarshal(value, &schema); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		f.fields = append(f.fields, schema.field(name, !slices.Contains(p.Schema.Required, name)))
		return nil
	})
	return f, err
}

// eachMember calls each with the members of a JSON object in their order.
func eachMember(object json.RawMessage, each func(name string, value json.RawMessage) error) error {
	if len(object) == 0 || string(object) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.New("the properties are not an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := each(fmt.Sprint(name), value); err != nil {
			return err
		}
	}
	return nil
}

// field returns the field with a name that the schema describes.
func (s fieldSchema) field(name string, optional bool) field {
	f := field{name: name, kind: cmp.Or(s.Type, "string")}
	f.question = agent.Question{Header: cmp.Or(s.Title, name), Text: s.Description, Optional: optional, Multiple: f.kind == "array"}
	choices := slices.Concat(s.OneOf, s.Items.AnyOf, s.Items.OneOf)
	for i, value := range slices.Concat(s.Enum, s.Items.Enum) {
		c := choice{Value: value}
		if i < len(s.Names) {
			c.Title = s.Names[i]
		}
		choices = append(choices, c)
	}
	if f.kind == "boolean" {
		choices = []choice{{Value: yes}, {Value: no}}
	}
	for _, c := range choices {
		label := cmp.Or(c.Title, c.Value)
		if slices.ContainsFunc(f.question.Options, func(o agent.Option) bool { return o.Label == label }) {
			label = c.Value
		}
		f.values = append(f.values, c.Value)
		f.question.Options = append(f.question.Options, agent.Option{Label: label, Description: c.Description})
	}
	f.question.FreeText = len(choices) == 0
	return f
}

// event returns the questions of the form.
func (f *form) event() *agent.Event {
	e := &agent.Event{Kind: agent.KindQuestion, Text: f.message}
	for _, field := range f.fields {
		q := field.question
		if q.Text == "" {
			q.Text, q.Header = q.Header, ""
		}
		e.Questions = append(e.Questions, q)
	}
	switch len(f.fields) {
	case 0:
		e.Questions = []agent.Question{{Text: f.message, Options: []agent.Option{{Label: yes}, {Label: no}}}}
		e.Text = ""
	case 1:
		if field := f.fields[0].question; field.Text == "" && f.message != "" { // else it would be only a name
			e.Questions[0].Header, e.Questions[0].Text = field.Header, f.message
			e.Text = ""
		}
	}
	return e
}

// answer returns the answer of the user as the agent expects it. An error is of kind
// agent.ErrUsage.
func (f *form) answer(answers [][]string) (formAnswer, error) {
	if len(f.fields) == 0 {
		if len(answers) == 1 && slices.Equal(answers[0], []string{yes}) {
			return formAnswer{Action: actionAccept}, nil
		}
		return formAnswer{Action: actionDecline}, nil
	}
	a := formAnswer{Action: actionAccept, Content: map[string]json.RawMessage{}}
	for i, field := range f.fields[:min(len(f.fields), len(answers))] {
		if len(answers[i]) == 0 {
			continue
		}
		value, err := field.value(answers[i])
		if err != nil {
			return formAnswer{}, err
		}
		a.Content[field.name] = value
	}
	return a, nil
}

// value returns the value of the field that an answer, which is not empty, stands for.
func (f *field) value(answer []string) (json.RawMessage, error) {
	values := slices.Clone(answer)
	for i, label := range answer {
		if n := slices.IndexFunc(f.question.Options, func(o agent.Option) bool { return o.Label == label }); n >= 0 {
			values[i] = f.values[n]
		}
	}
	switch f.kind {
	case "array":
		return json.Marshal(values)
	case "boolean":
		return json.Marshal(values[0] == yes)
	case "integer", "number":
		text := strings.TrimSpace(values[0])
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || f.kind == "integer" && n != float64(int64(n)) || !json.Valid([]byte(text)) {
			return nil, agent.Usagef("%s takes a number, not %q", f.question.Header, values[0])
		}
		return json.RawMessage(text), nil
	}
	return json.Marshal(values[0])
}

// elicit takes questions of the agent.
func (e *Engine) elicit(requestID json.RawMessage, f form) {
	e.mu.Lock()
	over := e.unwanted > 0 || e.interrupted
	e.mu.Unlock()
	a := &approval{requestID: slices.Clone(requestID), form: &f}
	if over {
		e.conn.Reply(requestID, a.cancelled())
		return
	}
	e.openRequest(a, f.event())
}

// AnswerQuestions answers questions of the agent.
func (e *Engine) AnswerQuestions(_ context.Context, approvalID string, answers [][]string) error {
	a, open := e.approvals.Peek(approvalID)
	if !open || a.form == nil {
		return engine.ErrTooLate
	}
	given, err := a.form.answer(answers)
	if err != nil {
		return err
	}
	if _, open := e.approvals.Take(approvalID); !open {
		return engine.ErrTooLate
	}
	defer e.background.Done()
	e.conn.Reply(a.requestID, given)
	return nil
}
