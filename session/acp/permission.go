package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// question is a question for permission that is open.
type question struct {
	id      string
	options []sdk.PermissionOption
	edit    string      // the edit it is about, see edit; empty for anything else
	answer  chan answer // takes one
}

type answer struct {
	outcome   sdk.RequestPermissionOutcome
	withdrawn bool // nobody has answered
}

// permission is what an engine needs of a question.
type permission struct {
	Options  []sdk.PermissionOption `json:"options"`
	ToolCall toolCall               `json:"toolCall"`
}

// permitted returns the answer to a request that the access includes, and reports
// the call it is about. Once the turn was asked to end nothing is permitted any
// more.
func (e *Engine) permitted(p permission) (sdk.RequestPermissionOutcome, bool) {
	files := e.decoder.files(&p.ToolCall)
	e.mu.Lock()
	access, interrupted, accepted := e.access, e.interrupted, e.accepted[edit(p.ToolCall.Kind, files)]
	e.mu.Unlock()
	q := question{options: p.Options}
	option, ok := q.option(engine.Accept)
	included := e.Permits != nil && e.Permits(access, p.ToolCall.Kind) && e.start.MayEdit(access, files)
	if !ok || !included && !accepted {
		return sdk.RequestPermissionOutcome{}, false
	}
	if interrupted {
		return sdk.NewRequestPermissionOutcomeCancelled(), true
	}
	if event := e.decoder.permitted(&p.ToolCall); event != nil {
		e.emit(event)
	}
	return sdk.NewRequestPermissionOutcomeSelected(option), true
}

// edit tells the edits of different files apart. It is empty for what is not an
// edit, or of no known file.
func edit(kind string, files []string) string {
	if !isEdit(kind) || len(files) == 0 || slices.Contains(files, "") {
		return ""
	}
	files = slices.Clone(files)
	slices.Sort(files)
	return kind + "\x00" + strings.Join(slices.Compact(files), "\x00")
}

func isEdit(kind string) bool { return kind == "edit" || kind == "delete" || kind == "move" }

// ask opens a question that the agent calls agentID, nil for one that is declined.
func (e *Engine) ask(agentID string, p permission) *question {
	q := &question{options: p.Options, answer: make(chan answer, 1)}
	if isEdit(p.ToolCall.Kind) {
		// What an agent accepts for the session is more than what it asked for, such
		// as every edit, so the answer is to accept once.
		q.options = slices.DeleteFunc(q.options, func(o sdk.PermissionOption) bool { return o.Kind == sdk.PermissionOptionKindAllowAlways })
		q.edit = edit(p.ToolCall.Kind, e.decoder.files(&p.ToolCall))
	}
	id, asked, other := e.questions.Open(agentID, q)
	event := e.decoder.asked(&p.ToolCall)
	if reason := asked.Denied(); reason != "" {
		event.Failed, event.Text = true, reason
		e.emit(event)
		if other != nil {
			other.answer <- withdrawn
		}
		return nil
	}
	e.background.Add(1)
	q.id, event.ApprovalID = id, id
	e.emit(event)
	return q
}

// wait returns the answer to a question.
func (e *Engine) wait(ctx context.Context, q *question) (any, *sdk.RequestError) {
	defer e.background.Done()
	var a answer
	select {
	case a = <-q.answer:
	case <-ctx.Done():
		if _, open := e.questions.Take(q.id); !open { // it is answered as well
			a = <-q.answer
			break
		}
		e.unasked(q.id)
		return nil, sdk.NewRequestCancelled(nil)
	}
	if a.withdrawn {
		e.unasked(q.id)
	}
	return sdk.RequestPermissionResponse{Outcome: a.outcome}, nil
}

func (e *Engine) unasked(id string) {
	e.speaking.Lock()
	defer e.speaking.Unlock()
	e.sink.Answered(id)
}

// withdrawn is the answer to a question that nobody has answered.
var withdrawn = answer{sdk.NewRequestPermissionOutcomeCancelled(), true}

// withdraw answers what nobody has answered.
func (e *Engine) withdraw() {
	for _, q := range e.questions.Clear() {
		q.answer <- withdrawn
	}
}

// Answer answers a question for permission.
func (e *Engine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	q, open := e.questions.Take(approvalID)
	if !open {
		return engine.ErrTooLate
	}
	if d == engine.Cancel {
		// First, or the turn would go on without the tool for a while.
		err := e.Interrupt(ctx)
		q.answer <- answer{outcome: sdk.NewRequestPermissionOutcomeCancelled()}
		return err
	}
	option, ok := q.option(d)
	if !ok {
		q.answer <- answer{outcome: sdk.NewRequestPermissionOutcomeCancelled()}
		return fmt.Errorf("the agent cannot be told %s, so it was told nothing is allowed", d)
	}
	if d == engine.AcceptForSession && q.edit != "" {
		e.mu.Lock()
		e.accepted[q.edit] = true
		e.mu.Unlock()
	}
	q.answer <- answer{outcome: sdk.NewRequestPermissionOutcomeSelected(option)}
	return nil
}

// option returns the agent's option for a decision. One that is for ever is not
// taken for a decision that is for once.
func (q *question) option(d engine.Decision) (sdk.PermissionOptionId, bool) {
	kinds := []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce}
	switch d {
	case engine.Accept:
		kinds[0] = sdk.PermissionOptionKindAllowOnce
	case engine.AcceptForSession:
		kinds = []sdk.PermissionOptionKind{sdk.PermissionOptionKindAllowAlways, sdk.PermissionOptionKindAllowOnce}
	}
	for _, kind := range kinds {
		for _, o := range q.options {
			if o.Kind == kind {
				return o.OptionId, true
			}
		}
	}
	return "", false
}

// handle deals with a message of the agent's own.
func (e *Engine) handle(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	in := e.inbound
	if method == sdk.ClientMethodSessionRequestPermission && in.asks {
		var p permission
		if err := json.Unmarshal(params, &p); err != nil {
			defer close(in.done)
			e.emit(&agent.Event{Kind: agent.KindRaw, Text: string(in.line)})
			return nil, sdk.NewInvalidParams(map[string]string{"error": err.Error()})
		}
		if e.wire.late() {
			close(in.done)
			return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
		}
		if outcome, ok := e.permitted(p); ok {
			close(in.done)
			return sdk.RequestPermissionResponse{Outcome: outcome}, nil
		}
		q := e.ask(in.id, p)
		close(in.done)
		if q == nil {
			return sdk.RequestPermissionResponse{Outcome: withdrawn.outcome}, nil
		}
		return e.wait(ctx, q)
	}
	defer close(in.done)
	if method == sdk.ClientMethodSessionUpdate && e.update(params) {
		return nil, nil
	}
	e.emit(&agent.Event{Kind: agent.KindRaw, Text: string(in.line)})
	return nil, sdk.NewMethodNotFound(method)
}
