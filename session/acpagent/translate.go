package acpagent

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// translator makes updates of the events of a session. Its methods may be called
// concurrently.
type translator struct {
	workdir string
	notices bool // the client shows them

	mu      sync.Mutex
	prefix  string // of the IDs of messages, so that each is used once
	turn    int
	last    int    // number of a message, or of a tool call without an ID
	said    string // the kind and the agent's ID of the message that may continue
	message string // its ID
	open    map[string]*call
	recent  *call // the last one that has ended
}

// call is a tool call of the turn.
type call struct {
	id        string
	paths     []location
	announced bool    // the client knows it
	asked     bool    // the client was asked for permission
	pieces    []piece // changes of files, which are shown in place of its output
}

func newTranslator(workdir, prefix string, notices bool) *translator {
	return &translator{workdir: workdir, prefix: prefix, notices: notices, open: map[string]*call{}}
}

// updates returns what the client gets of an event.
func (t *translator) updates(e *agent.Event) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Turn != t.turn {
		t.turn, t.said = e.Turn, ""
	}
	switch e.Kind {
	case agent.KindText, agent.KindThinking:
		return t.say(e)
	case agent.KindHeartbeat, agent.KindUsage, agent.KindRaw:
	default:
		t.said = "" // something is between this message and the next
	}
	switch e.Kind {
	case agent.KindToolCall:
		return t.call(e.Tool)
	case agent.KindToolResult:
		return t.result(e)
	case agent.KindFileChange:
		return t.changes(e)
	case agent.KindApproval:
		return t.denied(e)
	case agent.KindPlan:
		return t.plan(e)
	case agent.KindUsage:
		return usageOf(e)
	case agent.KindWarning:
		return t.notice("warning", e.Text)
	case agent.KindRetry:
		return t.notice("info", "the request to the model is repeated: "+e.Text)
	case agent.KindResult:
		return t.endTurn(e)
	}
	return nil
}

// say returns what the agent says or thinks. What a subagent says is for the agent.
func (t *translator) say(e *agent.Event) []any {
	if e.Text == "" || e.Subagent != "" {
		return nil
	}
	kind := updateText
	if e.Kind == agent.KindThinking {
		kind = updateThought
	}
	if said := kind + " " + e.MessageID; !e.Delta || said != t.said {
		t.said, t.message = said, t.next()
	}
	if !e.Delta {
		t.said = ""
	}
	return []any{textUpdate{Kind: kind, Content: text(e.Text), MessageID: t.message}}
}

// next returns an ID that the session has not used.
func (t *translator) next() string {
	t.last++
	return t.prefix + "-" + strconv.Itoa(t.last)
}

// user returns a message of the user, of an earlier turn.
func (t *translator) user(message string) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = ""
	return textUpdate{Kind: updateUser, Content: text(message), MessageID: t.next()}
}

// own returns a message of the server itself.
func (t *translator) own(message string) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = ""
	return textUpdate{Kind: updateText, Content: text(message), MessageID: t.next()}
}

// find returns the call with the agent's ID, a new one if it is not open.
func (t *translator) find(id string) *call {
	c := t.open[id]
	if c == nil {
		c = &call{id: id}
		if id == "" {
			c.id = t.next()
		}
		t.open[id] = c
	}
	return c
}

// announce returns the update of a call, which is new to the client or not.
func (t *translator) announce(c *call, is toolCall) any {
	is.ID = c.id
	kind := updateCallMore
	if !c.announced {
		c.announced, kind = true, updateCall
	}
	c.paths = append(c.paths, is.Locations...)
	return callUpdate{kind, is}
}

func (t *translator) call(tool *agent.Tool) []any {
	if tool == nil {
		return nil
	}
	is := describe(tool, t.workdir)
	is.Status = callRunning
	return []any{t.announce(t.find(tool.ID), is)}
}

func status(failed bool) string {
	if failed {
		return callFailed
	}
	return callCompleted
}

func (t *translator) result(e *agent.Event) []any {
	if e.Tool == nil {
		return nil
	}
	c := t.find(e.Tool.ID)
	is := toolCall{Status: status(e.Failed)}
	if !c.announced { // the agent did not report its beginning
		is = describe(e.Tool, t.workdir)
		is.Status = status(e.Failed)
	}
	if is.Content = outputOf(e.Tool); len(c.pieces) > 0 {
		is.Content = nil // they stay
	}
	if e.Tool.ExitCode != nil {
		is.RawOutput, _ = json.Marshal(map[string]int{"exit_code": *e.Tool.ExitCode}) // it is a number
	}
	delete(t.open, e.Tool.ID)
	t.recent = c
	return []any{t.announce(c, is)}
}

// changes returns changes of files, as part of the call that has made them. Some agents
// report them before the result of the call, others after it, and some without a call.
func (t *translator) changes(e *agent.Event) []any {
	var updates []any
	done := map[*call]*toolCall{}
	var order []*call
	for _, change := range e.Changes {
		c := t.making(location{absolute(change.Path, t.workdir)})
		if c == nil {
			id := t.next()
			c = &call{id: id, paths: []location{{absolute(change.Path, t.workdir)}}}
			t.recent = c
		}
		is := done[c]
		if is == nil {
			is = &toolCall{}
			if !c.announced {
				is.Title, is.Kind, is.Status = change.Action+" "+change.Path, "edit", status(e.Failed)
			}
			done[c] = is
			order = append(order, c)
		}
		c.pieces = append(c.pieces, diffs(change, t.workdir)...)
		is.Locations = append(is.Locations, location{absolute(change.Path, t.workdir)})
	}
	for _, c := range order {
		done[c].Content = c.pieces
		for id, other := range t.open {
			if other == c && !c.announced { // it was asked for, and is now done
				delete(t.open, id)
			}
		}
		updates = append(updates, t.announce(c, *done[c]))
	}
	return updates
}

// making returns the call that changes a file, nil if it is not known.
func (t *translator) making(file location) *call {
	for _, c := range t.open {
		if slices.Contains(c.paths, file) {
			return c
		}
	}
	if t.recent != nil && slices.Contains(t.recent.paths, file) {
		return t.recent
	}
	return nil
}

// asked returns the call that the agent asks permission for.
func (t *translator) asked(a session.Approval) toolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	tool := agent.Tool{ID: "approval-" + a.ID, Name: "permission"}
	if a.Tool != nil {
		tool = *a.Tool
		if tool.ID == "" {
			tool.ID = "approval-" + a.ID
		}
	}
	is := describe(&tool, t.workdir)
	if a.Tool == nil && a.Reason != "" {
		is.Title = a.Reason
	}
	c := t.find(tool.ID)
	c.paths, c.asked = append(c.paths, is.Locations...), true
	is.ID, is.Status = c.id, callPending
	if a.Reason != "" {
		is.Content = texts(a.Reason)
	}
	return is
}

// declined returns the end of a call that the user has declined, where the agent will not
// report it.
func (t *translator) declined(id string) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, c := range t.open {
		if c.id == id && !c.announced {
			delete(t.open, key)
			return []any{callUpdate{updateCallMore, toolCall{ID: id, Status: callFailed}}}
		}
	}
	return nil
}

// denied returns the end of a call that was declined at once.
func (t *translator) denied(e *agent.Event) []any {
	if !e.Failed || e.Tool == nil {
		return nil // an open request is asked for by itself
	}
	is := describe(e.Tool, t.workdir)
	is.Status = callFailed
	if e.Text != "" {
		is.Content = texts(e.Text)
	}
	c := t.find(e.Tool.ID)
	delete(t.open, e.Tool.ID)
	return []any{t.announce(c, is)}
}

func (t *translator) plan(e *agent.Event) []any {
	if e.Subagent != "" {
		return nil
	}
	u := planUpdate{Kind: updatePlan, Entries: []planEntry{}}
	for _, step := range e.Plan {
		entry := planEntry{Content: step.Text, Priority: "medium", Status: step.Status}
		if !slices.Contains([]string{callPending, callRunning, callCompleted}, entry.Status) {
			entry.Status = callPending
		}
		u.Entries = append(u.Entries, entry)
	}
	return []any{u}
}

// usageOf returns how much of the context is in use, if the runtime reports it.
func usageOf(e *agent.Event) []any {
	if e.Usage == nil || e.Subagent != "" || e.Usage.ContextSize <= 0 {
		return nil
	}
	u := usageUpdate{Kind: updateUsage, Used: e.Usage.Context, Size: e.Usage.ContextSize}
	if e.Usage.CostUSD != nil {
		u.Cost = &cost{*e.Usage.CostUSD, "USD"}
	}
	return []any{u}
}

func (t *translator) notice(severity, title string) []any {
	if !t.notices || title == "" {
		return nil
	}
	return []any{noticeUpdate{updateNotice, severity, title}}
}

// endTurn ends the calls whose end the agent has not reported.
func (t *translator) endTurn(e *agent.Event) []any {
	if e.Subagent != "" {
		return nil
	}
	var updates []any
	for _, c := range t.open {
		if c.announced || c.asked {
			updates = append(updates, callUpdate{updateCallMore, toolCall{ID: c.id, Status: status(e.Failed)}})
		}
	}
	clear(t.open)
	t.recent = nil
	return updates
}
