package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// approval is an approval request that is open.
type approval struct {
	id        string
	requestID json.RawMessage // of the agent
	options   []option
	edit      string // the edit it is about, see edit; empty for anything else
	form      *form  // of questions; nil for an approval request
}

// cancelled is the answer to a request that is over.
func (a *approval) cancelled() any {
	if a.form != nil {
		return formAnswer{Action: actionCancel}
	}
	return cancelled()
}

// permission takes a request for permission.
func (e *Engine) permission(requestID json.RawMessage, p permission) {
	if t := e.decoder.tools[p.ToolCall.ID]; t != nil { // some agents do not repeat it
		p.ToolCall.Kind = cmp.Or(p.ToolCall.Kind, t.Kind)
	}
	files := e.decoder.files(&p.ToolCall)
	subject := e.edit(p.ToolCall.Kind, files)
	e.mu.Lock()
	access, late, interrupted := e.access, e.unwanted > 0, e.interrupted
	accepted := e.accepted[subject]
	e.mu.Unlock()
	included := e.Permits != nil && e.Permits(access, p.ToolCall.Kind) && e.start.MayEdit(access, files)
	accept, ok := optionFor(p.Options, engine.Accept)
	switch {
	case late, ok && (included || accepted) && interrupted: // nothing is permitted once the turn was asked to end
		e.conn.Reply(requestID, cancelled())
	case ok && (included || accepted):
		if event := e.decoder.permitted(&p.ToolCall); event != nil {
			e.emit(event)
		}
		e.conn.Reply(requestID, selected(accept))
	default:
		e.ask(requestID, p, files, subject)
	}
}

// edit identifies the edit of a file. It is empty for what is not an
// edit, or of no known file.
func (e *Engine) edit(kind string, files []string) string {
	if !isEdit(kind) {
		return ""
	}
	if places := e.start.Places(files); places != "" {
		return kind + "\x00" + places
	}
	return ""
}

func isEdit(kind string) bool { return kind == "edit" || kind == "delete" || kind == "move" }

// ask passes an approval request on.
func (e *Engine) ask(requestID json.RawMessage, p permission, files []string, subject string) {
	a := &approval{requestID: slices.Clone(requestID), options: p.Options}
	if isEdit(p.ToolCall.Kind) {
		// What an agent accepts for the session is more than what it asked for, such
		// as every edit, so the answer is to accept once.
		a.options = slices.DeleteFunc(a.options, func(o option) bool { return o.Kind == allowAlways })
		a.edit = subject
	}
	event := e.decoder.asked(&p.ToolCall)
	e.describe(event.Tool, &p.ToolCall, files, event.Text)
	e.openRequest(a, event)
}

// kinds maps the kinds of tools of the protocol. A change of the mode of the agent is not
// among them: what it allows is not known.
var kinds = map[string]agent.ToolKind{
	"read": agent.ToolRead, "search": agent.ToolRead, "edit": agent.ToolEdit, "delete": agent.ToolDelete, "move": agent.ToolDelete,
	"execute": agent.ToolExecute, "fetch": agent.ToolFetch, "think": agent.ToolOther, "other": agent.ToolOther, "": agent.ToolOther,
}

// describe adds to a tool, which may be nil, what a request would allow. Why is the text of
// the request.
func (e *Engine) describe(tool *agent.Tool, c *toolCall, files []string, why string) {
	if tool == nil {
		return
	}
	t := e.decoder.tools[c.ID]
	tool.Kind = kinds[t.Kind]
	if tool.Kind == agent.ToolOther && t.runsCommand() { // some agents give no kind
		tool.Kind = agent.ToolExecute
	}
	switch {
	case tool.Kind == agent.ToolRead, tool.Kind == agent.ToolEdit, tool.Kind == agent.ToolDelete:
		engine.SetFiles(tool, files)
	case tool.Kind != agent.ToolExecute:
	case t.hasInput():
		tool.Command = e.start.Command(t.RawInput)
	case e.Command != nil:
		tool.Command = e.Command(t.Title, why, e.start)
	}
}

// runsCommand reports whether the input of a call looks like that of a command.
func (c *toolCall) runsCommand() bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(c.RawInput, &members) == nil && (members["command"] != nil || members["cmd"] != nil)
}

// openRequest opens a request and passes it on. If the turn was asked to end, it cancels
// the request.
func (e *Engine) openRequest(a *approval, event *agent.Event) {
	e.speaking.Lock() // so that Answered comes after the request
	e.mu.Lock()       // so that Interrupt finds the whole request, or none
	if e.running && e.interrupted {
		e.mu.Unlock()
		e.speaking.Unlock()
		e.conn.Reply(a.requestID, a.cancelled())
		return
	}
	id, denied, other := e.approvals.Open(string(a.requestID), event, a)
	if denied != "" {
		event.Failed, event.Text = true, denied
	} else {
		e.background.Add(1)
		a.id, event.ApprovalID = id, id
	}
	e.mu.Unlock()
	e.sink.Event(event)
	e.speaking.Unlock()
	if denied == "" {
		return
	}
	e.conn.Reply(a.requestID, a.cancelled())
	if other != nil {
		e.conn.Reply(other.requestID, other.cancelled())
		e.answered(other.id)
	}
}

// answered reports that an approval request needs no answer any more.
func (e *Engine) answered(id string) {
	defer e.background.Done()
	e.speaking.Lock()
	defer e.speaking.Unlock()
	e.sink.Answered(id)
}

// withdraw cancels the approval requests that are open.
func (e *Engine) withdraw() {
	ids, open := e.approvals.Clear()
	for i, a := range open {
		e.conn.Reply(a.requestID, a.cancelled())
		go e.answered(ids[i])
	}
}

// Answer answers an approval request.
func (e *Engine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	a, open := e.approvals.Take(approvalID)
	if !open {
		return engine.ErrTooLate
	}
	defer e.background.Done()
	option, ok := optionFor(a.options, d)
	switch {
	case d == engine.Cancel:
		// First, or the turn would continue without the tool for a while.
		err := e.Interrupt(ctx)
		e.conn.Reply(a.requestID, a.cancelled())
		return err
	case a.form != nil:
		e.conn.Reply(a.requestID, formAnswer{Action: actionDecline})
		return nil
	case !ok:
		e.conn.Reply(a.requestID, cancelled())
		return fmt.Errorf("the agent does not take the decision %s, so the approval request was cancelled", d)
	case d == engine.AcceptForSession && a.edit != "":
		e.mu.Lock()
		e.accepted[a.edit] = true
		e.mu.Unlock()
	}
	e.conn.Reply(a.requestID, selected(option))
	return nil
}

// optionFor returns the agent's option for a decision. One that is for ever is not
// taken for a decision that is for once.
func optionFor(options []option, d engine.Decision) (id string, ok bool) {
	kinds := map[engine.Decision][]string{
		engine.Accept: {allowOnce}, engine.AcceptForSession: {allowAlways, allowOnce}, engine.Decline: {rejectOnce},
	}
	for _, kind := range kinds[d] {
		if i := slices.IndexFunc(options, func(o option) bool { return o.Kind == kind }); i >= 0 {
			return options[i].ID, true
		}
	}
	return "", false
}
