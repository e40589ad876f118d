package streamjson

import (
	"context"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// approval is an approval request, or questions, that is open.
type approval struct {
	requestID   string
	subject     string
	input       json.RawMessage
	suggestions []suggestion
	questions   bool // it asks the user questions
}

// suggestion is a change of permissions that the agent proposes.
type suggestion struct {
	Type        string          `json:"type"`
	Rules       json.RawMessage `json:"rules,omitempty"`
	Behavior    string          `json:"behavior,omitempty"`
	Destination string          `json:"destination"`
}

// agentRequest is what the agent asks.
type agentRequest struct {
	Subtype     string          `json:"subtype"`
	ToolName    string          `json:"tool_name"`
	ToolUseID   string          `json:"tool_use_id"`
	Input       json.RawMessage `json:"input"`
	Reason      string          `json:"decision_reason"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
}

// suggestions returns those that are understood: all or none.
func (r *agentRequest) suggestions() []suggestion {
	var list []suggestion
	if r.Suggestions == nil || json.Unmarshal(r.Suggestions, &list) != nil {
		return nil
	}
	return list
}

// asked takes a request of the agent.
func (e *Engine) asked(c *control) {
	if c.Request.Subtype != "can_use_tool" {
		e.refuse(c)
		return
	}
	if e.cut != nil { // what cannot be read cannot be allowed
		e.reply(c.RequestID, answer{Behavior: "deny", Message: "The approval request cannot be read."})
		return
	}
	a := approval{c.RequestID, e.subject(&c.Request), c.Request.Input, c.Request.suggestions(), false}
	event := agent.Event{
		Kind: agent.KindApproval, Text: c.Request.Reason,
		Tool: &agent.Tool{ID: c.Request.ToolUseID, Name: c.Request.ToolName, Input: c.Request.Input},
	}
	if e.Describe != nil {
		e.Describe(event.Tool, e.start)
	}
	if e.Questions != nil && e.Answered != nil {
		if questions := e.Questions(c.Request.ToolName, c.Request.Input); len(questions) > 0 {
			a.questions = true
			event = agent.Event{Kind: agent.KindQuestion, Questions: questions}
		}
	}
	id, denied, _ := e.approvals.Open(c.RequestID, &event, a)
	if denied != "" {
		e.reply(c.RequestID, answer{Behavior: "deny", Message: denied})
		event.Failed, event.Text = true, denied
		e.sink.Event(&event)
		e.sink.Answered(id)
		return
	}
	e.mu.Lock()
	accepted := !a.questions && (e.accepted[a.subject] || e.includes(&c.Request))
	e.mu.Unlock()
	if accepted {
		e.approvals.Take(id)
		e.reply(c.RequestID, a.answer(engine.Accept))
		return
	}
	event.ApprovalID = id
	e.sink.Event(&event)
}

// includes reports whether write access includes what is requested. e.mu is held.
func (e *Engine) includes(r *agentRequest) bool {
	return e.access == agent.AccessWrite && e.Edits != nil && e.start.MayEdit(e.access, e.Edits(r.ToolName, r.Input))
}

// subject identifies what an approval request is for. It is empty if it must not be
// remembered.
func (e *Engine) subject(r *agentRequest) string {
	if e.Edits != nil {
		if files := e.Edits(r.ToolName, r.Input); files != nil {
			if places := e.start.Places(files); places != "" {
				return r.ToolName + " " + places
			}
			return ""
		}
	}
	if e.Subject != nil {
		return r.ToolName + " " + e.Subject(r.ToolName, r.Input)
	}
	return r.ToolName + " " + string(r.Input)
}

// declineAll declines what is open when a turn ends: most went with it, but a subagent that
// works on would wait.
func (e *Engine) declineAll() {
	ids, open := e.approvals.Clear()
	for i, a := range open {
		e.reply(a.requestID, a.answer(engine.Decline))
		e.sink.Answered(ids[i])
	}
}

// reply answers an approval request without waiting.
func (e *Engine) reply(id string, a answer) {
	if line, err := a.line(id); err == nil {
		_ = e.input.Post(line) // an agent that does not read goes without
	}
}

// refuse answers what is not understood.
func (e *Engine) refuse(c *control) {
	line, err := json.Marshal(controlResponse{"control_response", response{
		Subtype: "error", RequestID: c.RequestID, Error: "not supported by this client: " + c.Request.Subtype,
	}})
	if err == nil {
		_ = e.input.Post(line) // an agent that does not read goes without
	}
}

// Answer answers an approval request.
func (e *Engine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	a, open := e.approvals.Take(approvalID)
	if !open {
		return engine.ErrTooLate
	}
	if d == engine.AcceptForSession && a.subject != "" {
		e.mu.Lock()
		e.accepted[a.subject] = true
		e.mu.Unlock()
	}
	line, err := a.answer(d).line(a.requestID)
	if err != nil {
		return err
	}
	_, err = e.input.Write(ctx, line)
	return err
}

// AnswerQuestions answers questions of the agent.
func (e *Engine) AnswerQuestions(ctx context.Context, approvalID string, answers [][]string) error {
	a, open := e.approvals.Take(approvalID)
	if !open {
		return engine.ErrTooLate
	}
	line, err := answer{Behavior: "allow", Input: e.Answered(a.input, answers)}.line(a.requestID)
	if err != nil {
		return err
	}
	_, err = e.input.Write(ctx, line)
	return err
}

// answer answers an approval request.
type answer struct {
	Behavior  string          `json:"behavior"`
	Input     json.RawMessage `json:"updatedInput,omitempty"`
	Changes   []suggestion    `json:"updatedPermissions,omitempty"`
	Message   string          `json:"message,omitempty"`
	Interrupt bool            `json:"interrupt,omitempty"`
}

// line returns the line with the answer to a request.
func (a answer) line(requestID string) ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return json.Marshal(controlResponse{"control_response", response{Subtype: "success", RequestID: requestID, Response: text}})
}

func (p approval) answer(d engine.Decision) answer {
	switch {
	case d == engine.Cancel:
		return answer{Behavior: "deny", Message: "The user wants the turn to end.", Interrupt: true}
	case p.questions:
		return answer{Behavior: "deny", Message: "The user does not answer. Decide yourself, or end your turn with the question."}
	case d == engine.Accept:
		return answer{Behavior: "allow", Input: p.input}
	case d == engine.AcceptForSession:
		a := answer{Behavior: "allow", Input: p.input}
		for _, s := range p.suggestions {
			// Others change more than what the request is for; the engine accepts
			// the same request again by itself. The destination is always the
			// session, whatever the agent proposes.
			if s.Type == "addRules" && s.Behavior == "allow" {
				s.Destination = "session"
				a.Changes = append(a.Changes, s)
			}
		}
		return a
	}
	return answer{Behavior: "deny", Message: "The user declines."}
}
