package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// decisions are the answers to a request for permission that the client can choose from.
var decisions = []struct {
	decision session.Decision
	option   permissionOption
}{
	{session.Accept, permissionOption{"allow", "Allow", "allow_once"}},
	{session.AcceptForSession, permissionOption{"allow_session", "Allow for this session", "allow_always"}},
	{session.Decline, permissionOption{"reject", "Reject", "reject_once"}},
}

// approve asks the client for permission.
func (s *conversation) approve(ctx context.Context, a session.Approval) session.Decision {
	s.mu.Lock()
	t := s.translator
	s.mu.Unlock()
	params := permissionParams{SessionID: s.id, ToolCall: t.asked(a)}
	for _, d := range decisions {
		params.Options = append(params.Options, d.option)
	}
	got, err := request[permissionResult](ctx, s, methodPermission, params)
	decision := session.Decline
	switch {
	case ctx.Err() != nil:
		return "" // it needs no answer any more
	case err != nil:
		s.c.warn(fmt.Sprintf("session %s: the client does not answer a request for permission, which is declined: %v", s.id, err))
	case got.Outcome.Outcome == "cancelled":
		decision = session.Cancel
	default:
		for _, d := range decisions {
			if d.option.ID == got.Outcome.OptionID {
				decision = d.decision
			}
		}
	}
	if decision == session.Decline || decision == session.Cancel {
		for _, u := range t.declined(params.ToolCall.ID) {
			s.update(u)
		}
	}
	return decision
}

// request asks the client for something, once it knows the session. When ctx ends, the
// request is withdrawn.
func request[T any](ctx context.Context, s *conversation, method string, params any) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	var none T
	select {
	case <-s.opened:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-s.c.ctx.Done():
		return none, context.Cause(s.c.ctx)
	}
	answered := make(chan outcome, 1)
	var id json.RawMessage
	s.c.send(func(ctx context.Context) (err error) {
		id, _, err = s.c.rpc.Start(ctx, method, params, func(m *jsonrpc.Message) {
			var o outcome
			o.err = m.Decode(&o.result)
			answered <- o
		})
		return err
	})
	select {
	case o := <-answered:
		return o.result, o.err
	case <-s.c.ctx.Done():
		return none, context.Cause(s.c.ctx)
	case <-ctx.Done():
		s.c.send(func(ctx context.Context) error { return s.c.rpc.Notify(ctx, methodCancelRequest, cancelParams{id}) })
		return none, context.Cause(ctx)
	}
}

// ask asks the user the questions of the agent, with a form of the client.
func (s *conversation) ask(ctx context.Context, q session.QuestionRequest) [][]string {
	f, ok := formOf(q)
	if _, forms := s.c.takes(); !forms || !ok {
		s.reportDeclined(q.Text, q.Questions)
		return [][]string{}
	}
	f.SessionID = s.id
	got, err := request[formResult](ctx, s, methodElicit, f)
	switch {
	case ctx.Err() != nil:
		return nil // they need no answer any more
	case err != nil:
		s.c.warn(fmt.Sprintf("session %s: the client does not answer questions, which are declined: %v", s.id, err))
		return [][]string{}
	case got.Action != "accept":
		return [][]string{}
	}
	return got.answers(q.Questions)
}

// reportDeclined shows the user which questions of the agent were declined.
func (s *conversation) reportDeclined(about string, questions []agent.Question) {
	lines := []string{"The agent asks, and this client cannot show questions, so they are declined:"}
	if about != "" {
		lines = append(lines, about)
	}
	for _, q := range questions {
		lines = append(lines, "- "+q.Text)
	}
	text := strings.Join(lines, "\n")
	s.mu.Lock()
	t := s.translator
	s.mu.Unlock()
	if notices, _ := s.c.takes(); notices {
		s.update(noticeUpdate{updateNotice, "warning", text})
		return
	}
	s.update(t.own(text))
}

// formParams ask the user.
type formParams struct {
	SessionID string `json:"sessionId"`
	Mode      string `json:"mode"`
	Message   string `json:"message"`
	Schema    struct {
		Type       string           `json:"type"`
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required,omitempty"`
	} `json:"requestedSchema"`
}

// field is the schema of an answer.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Choices     []choice `json:"oneOf,omitempty"`
	Items       *struct {
		Choices []choice `json:"anyOf"`
	} `json:"items,omitempty"`
}

type choice struct {
	Value       string `json:"const"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

type formResult struct {
	Action  string                     `json:"action"`
	Content map[string]json.RawMessage `json:"content"`
}

// formOf returns a form for questions, and whether a form can ask them: it must not ask
// for a secret.
func formOf(q session.QuestionRequest) (f formParams, ok bool) {
	f.Mode, f.Message = "form", q.Text
	f.Schema.Type, f.Schema.Properties = "object", map[string]field{}
	for i, question := range q.Questions {
		if question.Secret {
			return f, false
		}
		f.Message = cmp.Or(f.Message, question.Text)
		name := fieldName(i)
		answer := field{Type: "string", Title: question.Header, Description: question.Text}
		var choices []choice
		for _, o := range question.Options {
			choices = append(choices, choice{o.Label, o.Label, o.Description})
		}
		switch {
		case question.Multiple && len(choices) > 0:
			answer.Type = "array"
			answer.Items = &struct {
				Choices []choice `json:"anyOf"`
			}{choices}
		default:
			answer.Choices = choices
		}
		f.Schema.Properties[name] = answer
		switch {
		case question.FreeText && len(choices) > 0:
			f.Schema.Properties[name+otherField] = field{Type: "string", Title: "Another answer to " + cmp.Or(question.Header, question.Text)}
		case !question.Optional:
			f.Schema.Required = append(f.Schema.Required, name)
		}
	}
	return f, true
}

// otherField follows the name of a field whose answer can also be a text.
const otherField = "_other"

func fieldName(i int) string { return fmt.Sprintf("answer%d", i+1) }

// answers returns the answers of a form.
func (r *formResult) answers(questions []agent.Question) [][]string {
	answers := make([][]string, len(questions))
	for i := range questions {
		for _, name := range []string{fieldName(i), fieldName(i) + otherField} {
			var one string
			var several []string
			if json.Unmarshal(r.Content[name], &one) == nil && strings.TrimSpace(one) != "" {
				answers[i] = []string{one} // a text in place of an option
			} else if json.Unmarshal(r.Content[name], &several) == nil && len(several) > 0 {
				answers[i] = several
			}
		}
	}
	return answers
}
