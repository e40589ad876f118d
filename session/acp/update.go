package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// notification is what an engine needs of an update. A part that is
// not read may be of any shape.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    struct {
		Kind      string `json:"sessionUpdate"`
		MessageID string `json:"messageId"`
		Entries   []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"entries"`
		Options json.RawMessage `json:"configOptions"`
		Meta    json.RawMessage `json:"_meta"`
		toolCall
	} `json:"update"`
}

// toolCall is a tool call, or what is new of one.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Content   json.RawMessage `json:"content"` // of a message too
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// block is a piece of content.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

func (b block) String() string { return cmp.Or(b.Text, b.Resource.Text, b.URI, b.Resource.URI) }

// piece is a piece of what a tool has given.
type piece struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
	Path    string `json:"path"` // and the rest, of a diff
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
	Meta    struct {
		Kind string `json:"kind"`
	} `json:"_meta"`
}

// update deals with an update and reports whether it is known.
func (e *Engine) update(params json.RawMessage) bool {
	var n notification
	if json.Unmarshal(params, &n) != nil {
		return false
	}
	e.mu.Lock()
	loading, prompted := e.loading, e.prompted
	ours, drop := n.SessionID == e.sessionID || loading && n.SessionID == e.start.Resume, loading || e.unwanted > 0
	if drop {
		e.dropped++
	}
	e.mu.Unlock()
	if ours && n.Update.Kind == "usage_update" {
		return e.measured(params, e.start.Resume != "" && !prompted)
	}
	if ours && n.Update.Kind == "config_option_update" {
		return e.configured(n.Update.Options)
	}
	if drop {
		return true
	}
	if !ours {
		return false
	}
	if n.Update.Kind == "session_info_update" && e.UpdateFails != nil && e.UpdateFails(n.Update.Meta) {
		e.decoder.failed = true
	}
	events, known := e.decoder.events(&n, e.Notices)
	for i := range events {
		e.emit(&events[i])
	}
	return known
}

// decoder makes events of what an agent says in a turn.
type decoder struct {
	speech   string // the kind of update that is a message that may continue
	messages int
	message  string // the ID of that message
	tools    map[string]*tool
	spoken   bool        // there was text or a tool call
	failed   bool        // an update says that the turn has failed
	answer   string      // the beginning of the text
	spent    agent.Usage // that the updates of messages have reported

	held   int  // bytes of tools, about
	forgot bool // of tools, because there were too many
}

// maxHeld is how much is remembered of the tools of a turn, in bytes.
const maxHeld = 64 << 20

// maxBeginning is how much of the text of a turn Engine.AnswerFailure gets, in bytes.
const maxBeginning = 4 << 10

// hold makes room for n bytes more. Where an agent says too much, its calls are
// forgotten, and no edit is accepted unasked for the rest of the turn.
func (d *decoder) hold(n int) {
	if d.held += n; d.held > maxHeld {
		d.tools, d.held, d.forgot = nil, n, true
	}
}

// tool is a tool call of the turn.
type tool struct {
	toolCall
	pieces       []piece
	called, done bool
	changed      bool // the call is not as it was reported
	entered      bool // the call was reported with its input
}

// report returns the event of the call, nil if there is nothing new in it. What changes
// in a call that has not begun waits for its beginning: some agents send their input in
// many pieces.
func (t *tool) report(begun bool) *agent.Event {
	again := t.called
	if again && (!t.changed || !begun && (t.entered || !t.hasInput())) {
		return nil
	}
	t.called, t.changed, t.entered = true, false, t.hasInput()
	return &agent.Event{Kind: agent.KindToolCall, Delta: again, Tool: t.call()}
}

// reset forgets the turn.
func (d *decoder) reset() {
	d.speech, d.tools, d.spoken, d.failed, d.answer, d.held, d.forgot = "", nil, false, false, "", 0, false
	d.spent = agent.Usage{}
}

func heartbeat() []agent.Event { return []agent.Event{{Kind: agent.KindHeartbeat}} }

// events returns the events of an update and whether its kind is known.
func (d *decoder) events(n *notification, notices []string) ([]agent.Event, bool) {
	switch u := &n.Update; u.Kind {
	case "agent_message_chunk":
		d.spend(u.Meta)
		return d.say(agent.KindText, u.MessageID, u.Content, notices)
	case "agent_thought_chunk":
		return d.say(agent.KindThinking, u.MessageID, u.Content, nil)
	case "tool_call", "tool_call_update":
		d.speech = ""
		return d.tool(&u.toolCall)
	case "plan":
		plan := make([]agent.PlanStep, len(u.Entries))
		for i, entry := range u.Entries {
			plan[i] = agent.PlanStep{Text: entry.Content, Status: entry.Status}
		}
		return []agent.Event{{Kind: agent.KindPlan, Plan: plan}}, true
	case "user_message_chunk", "available_commands_update", "current_mode_update", "session_info_update":
		return heartbeat(), true
	}
	return nil, false
}

// say returns the event of a piece of a message.
func (d *decoder) say(kind agent.Kind, id string, content json.RawMessage, notices []string) ([]agent.Event, bool) {
	var b block
	if json.Unmarshal(content, &b) != nil || b.String() == "" && b.Type != "text" {
		return nil, false // nothing that can be shown
	}
	text := b.String()
	if text == "" {
		return heartbeat(), true
	}
	for _, notice := range notices {
		if strings.HasPrefix(text, notice) {
			return heartbeat(), true
		}
	}
	if d.speech != string(kind) || id != "" && id != d.message {
		d.messages++
		d.speech, d.message = string(kind), id
		if id == "" {
			d.message = "message-" + strconv.Itoa(d.messages)
		}
	}
	if kind == agent.KindText {
		d.spoken = true
		d.answer += strings.ToValidUTF8(text[:min(len(text), maxBeginning-len(d.answer))], "")
	}
	return []agent.Event{{Kind: kind, MessageID: d.message, Text: text, Delta: true}}, true
}

// spend adds the tokens of a request to the model. Qwen Code 0.24.4 reports them with a
// message without text, and not at the end of the turn.
func (d *decoder) spend(meta json.RawMessage) {
	var m struct {
		Usage tokens `json:"usage"`
	}
	if len(meta) > 0 && json.Unmarshal(meta, &m) == nil {
		d.spent = plus(d.spent, m.Usage.usage())
	}
}

// merge takes what is new of a tool call.
func (d *decoder) merge(c *toolCall) (*tool, bool) {
	if c.ID == "" {
		return nil, false
	}
	d.spoken = true
	d.hold(c.size())
	t := d.tools[c.ID]
	if t == nil {
		t = &tool{toolCall: toolCall{ID: c.ID}}
		if d.tools == nil {
			d.tools = map[string]*tool{}
		}
		d.tools[c.ID] = t
	}
	name, input := t.name(), t.input()
	if len(c.Content) > 0 {
		var pieces []piece
		if json.Unmarshal(c.Content, &pieces) != nil {
			return nil, false
		}
		if len(pieces) > 0 {
			t.pieces = pieces
		}
	}
	t.Title, t.Kind, t.Name = cmp.Or(c.Title, t.Title), cmp.Or(c.Kind, t.Kind), cmp.Or(c.Name, t.Name)
	if len(c.Locations) > 0 {
		t.Locations = c.Locations
	}
	if len(c.RawInput) > 0 {
		t.RawInput = c.RawInput
	}
	if len(c.RawOutput) > 0 {
		t.RawOutput = c.RawOutput
	}
	t.changed = t.changed || t.called && !t.done && (name != t.name() || !bytes.Equal(input, t.input()))
	return t, true
}

// size returns about how many bytes a call holds.
func (c *toolCall) size() int {
	n := len(c.ID) + len(c.Title) + len(c.Name) + len(c.Kind) + len(c.RawInput) + len(c.RawOutput) + len(c.Content) + 256
	for _, l := range c.Locations {
		n += len(l.Path) + 32
	}
	return n
}

// tool returns the events of a tool call or of what is new of it. One that had to
// be permitted comes without its beginning.
func (d *decoder) tool(c *toolCall) ([]agent.Event, bool) {
	t, ok := d.merge(c)
	if !ok {
		return nil, false
	}
	var events []agent.Event
	if event := t.report(c.Status != "" && c.Status != "pending"); event != nil {
		events = append(events, *event)
	}
	over := c.Status == "completed" || c.Status == "failed"
	if over && !t.done {
		t.done = true
		if changes := t.changes(); len(changes) > 0 && c.Status == "completed" {
			events = append(events, agent.Event{Kind: agent.KindFileChange, Changes: changes})
		}
		events = append(events, agent.Event{
			Kind: agent.KindToolResult, Failed: c.Status == "failed",
			Tool: &agent.Tool{ID: t.ID, Name: t.name(), Output: agent.Plain(t.output())},
		})
		d.held -= min(d.held, len(t.RawInput)+len(t.RawOutput))
		t.pieces, t.Locations, t.RawInput, t.RawOutput = nil, nil, nil, nil // they can be large
	}
	if events == nil {
		return heartbeat(), true
	}
	return events, true
}

// asked returns the event of an approval request for a tool call. What the call has as
// content then is why it is asked, and nothing that the tool has given.
func (d *decoder) asked(c *toolCall) *agent.Event {
	d.speech = ""
	event := &agent.Event{Kind: agent.KindApproval}
	why := tool{}
	_ = json.Unmarshal(c.Content, &why.pieces) // or it does not say
	files := d.files(c)
	c.Content = nil
	if t, ok := d.merge(c); ok {
		event.Tool = t.call()
		event.Tool.Input = t.input(files...)
	}
	event.Text = why.text()
	return event
}

// permitted returns the event of a tool call that begins with an approval request which is
// answered already.
func (d *decoder) permitted(c *toolCall) *agent.Event {
	d.speech = ""
	c.Content = nil // why it is asked
	t, ok := d.merge(c)
	if !ok {
		return nil
	}
	return t.report(true)
}

func (t *tool) call() *agent.Tool {
	return &agent.Tool{ID: t.ID, Name: t.name(), Input: t.input()}
}

// name returns what kind of tool it is, or the name that some agents give.
func (t *tool) name() string {
	if t.Kind != "" && t.Kind != "other" {
		return t.Kind
	}
	return cmp.Or(t.Name, t.Title, t.Kind)
}

// input returns the tool's input, or what the agent reports about it instead, with
// the files that it names besides.
func (t *tool) input(files ...string) json.RawMessage {
	if t.hasInput() {
		return t.RawInput
	}
	said := struct {
		Path        string   `json:"path,omitempty"`
		Paths       []string `json:"paths,omitempty"` // where they are several
		Description string   `json:"description,omitempty"`
	}{Description: t.Title}
	if len(t.Locations) > 0 {
		said.Path = t.Locations[0].Path
	}
	slices.Sort(files)
	if files = slices.Compact(files); len(files) > 1 {
		said.Paths = files
	}
	input, _ := json.Marshal(said) // it is text
	return input
}

func (t *tool) hasInput() bool {
	raw := string(t.RawInput)
	return raw != "" && raw != "null" && raw != "{}"
}

// text returns the readable part of what the tool has given.
func (t *tool) text() string {
	var texts []string
	for _, p := range t.pieces {
		if text := p.Content.String(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

func (t *tool) output() string {
	if text := t.text(); text != "" || len(t.RawOutput) == 0 || string(t.RawOutput) == "null" {
		return text
	}
	var text string
	if json.Unmarshal(t.RawOutput, &text) == nil {
		return text
	}
	return string(t.RawOutput)
}

// changes returns the changes of files that the tool has made.
func (t *tool) changes() []agent.FileChange {
	var changes []agent.FileChange
	for _, p := range t.pieces {
		if p.Type != "diff" || p.Path == "" {
			continue
		}
		c := agent.FileChange{Path: p.Path, Action: "update"}
		switch {
		case p.Meta.Kind == "add", p.Meta.Kind == "" && p.OldText == "":
			c.Action = "add"
			c.SetWhole(p.NewText)
		case p.Meta.Kind == "delete", p.Meta.Kind == "" && p.NewText == "":
			c.Action = "delete"
			c.SetWhole(p.OldText)
		default:
			c.SetDiff(hunk(p.OldText, p.NewText))
		}
		changes = append(changes, c)
	}
	return changes
}
