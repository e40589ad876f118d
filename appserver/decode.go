package appserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// decoder turns notifications into events.
type decoder struct {
	streamed map[string]bool               // items whose text came in pieces
	begun    map[string]bool               // items that have begun
	over     map[string]bool               // and that have ended
	proposed map[string][]agent.FileChange // by item, while they are not made
	modern   bool                          // the server reports items
	before   agent.Usage                   // of the thread, before its first turn here
	counted  bool                          // a turn here has consumed something

	held   int                 // bytes of what is remembered of the turn, without others
	others map[string]*decoder // of the threads that this one has started
}

// maxHeld is how much is remembered of the items of a turn, in bytes.
const maxHeld = 16 << 20

// hold makes room for n bytes more. Where a server sends too much, some text is
// reported twice, and approval requests do not name the files.
func (d *decoder) hold(n int) {
	if d.held += n + 64; d.held > maxHeld {
		d.reset()
	}
}

// notice is what the notifications hold that become events.
type notice struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	Turn     *turn  `json:"turn"`
	Item     *item  `json:"item"`
	ItemID   string `json:"itemId"`
	Delta    string `json:"delta"`

	Error     *problem `json:"error"`
	WillRetry bool     `json:"willRetry"`

	TokenUsage *struct {
		Total tokens `json:"total"`
	} `json:"tokenUsage"`

	Plan []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`

	Message string `json:"message"` // warnings
	Summary string `json:"summary"`

	Msg *struct { // older servers
		Delta string `json:"delta"`
	} `json:"msg"`
}

type turn struct {
	ID     string   `json:"id"`
	Status string   `json:"status"`
	Error  *problem `json:"error"`
}

type problem struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

type tokens struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

type item struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	Text    string            `json:"text"`    // agentMessage
	Summary []string          `json:"summary"` // reasoning
	Content []json.RawMessage `json:"content"` // reasoning: texts

	Command  string `json:"command"` // commandExecution
	Output   string `json:"aggregatedOutput"`
	ExitCode *int   `json:"exitCode"`

	Changes []fileUpdate `json:"changes"` // fileChange

	Server    string          `json:"server"` // mcpToolCall
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     *problem        `json:"error"`

	Query string `json:"query"` // webSearch
}

// quiet lists the notifications that only the server's user interface needs.
var quiet = map[string]bool{
	"thread/started": true, "thread/status/changed": true, "thread/goal/cleared": true, "thread/name/updated": true,
	"turn/diff/updated": true, "account/rateLimits/updated": true, "account/updated": true, "remoteControl/status/changed": true,
	"serverRequest/resolved": true, "deprecationNotice": true, "configWarning": true,
	"item/reasoning/summaryPartAdded": true, "item/commandExecution/outputDelta": true, "item/fileChange/outputDelta": true,
	"mcpServer/startupStatus/updated": true, "skills/changed": true,
}

// completedMethod is the end of a turn.
const completedMethod = "turn/completed"

// events returns the events of a notification of a subagent, or of the main one
// where that is empty, with one turn running, empty where it is not known.
func (d *decoder) events(n Notification, subagent, running string) []agent.Event {
	var p notice
	unread := len(n.Params) > 0 && json.Unmarshal(n.Params, &p) != nil
	if unread && n.Method != completedMethod {
		return raw(n)
	}
	if subagent == "" {
		return d.decode(n, &p, running, unread)
	}
	if d.others == nil {
		d.others = map[string]*decoder{}
	}
	if d.heldByOthers() > maxHeld || d.others[subagent] == nil && len(d.others) == maxOthers {
		clear(d.others) // as in hold
	}
	if d.others[subagent] == nil {
		d.others[subagent] = &decoder{}
	}
	events := d.others[subagent].decode(n, &p, p.TurnID, unread)
	for i := range events {
		events[i].Subagent = subagent
	}
	return events
}

func (d *decoder) heldByOthers() (n int) {
	for id, other := range d.others {
		n += len(id) + other.held
	}
	return n
}

// maxOthers is how many subagents are remembered.
const maxOthers = 256

// decode decodes a notification, of which p holds what could be read.
func (d *decoder) decode(n Notification, p *notice, running string, unread bool) []agent.Event {
	d.modern = d.modern || strings.HasPrefix(n.Method, "item/")
	switch n.Method {
	case "turn/started":
		d.reset()
	case completedMethod:
		d.reset()
		return completed(p, unread)
	case "item/agentMessage/delta":
		return d.delta(agent.KindText, p.ItemID, p.Delta)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		return d.delta(agent.KindThinking, p.ItemID, p.Delta)
	case "codex/event/agent_message_delta":
		if p.Msg != nil && !d.modern { // some servers say all in both ways
			return d.delta(agent.KindText, p.ItemID, p.Msg.Delta)
		}
	case "item/started":
		if p.Item != nil && d.first(&d.begun, p.Item.ID) {
			return d.started(p.Item)
		}
	case "item/completed":
		if p.Item != nil && d.first(&d.over, p.Item.ID) {
			if events := d.item(p.Item); events != nil {
				return events
			}
			return raw(n)
		}
	case "turn/plan/updated":
		return plan(p)
	case "thread/tokenUsage/updated":
		return d.usage(p, running)
	case "error":
		if p.Error != nil {
			return p.Error.events(p.WillRetry)
		}
	case "warning":
		return []agent.Event{{Kind: agent.KindWarning, Text: p.Message + p.Summary}}
	default:
		if !quiet[n.Method] {
			return raw(n)
		}
	}
	return []agent.Event{{Kind: agent.KindHeartbeat}}
}

// reset forgets what belongs to a turn.
func (d *decoder) reset() {
	d.held = 0
	clear(d.streamed)
	clear(d.begun)
	clear(d.over)
	clear(d.proposed)
}

// first reports whether an item is not in a set of items of the turn yet, and adds it.
func (d *decoder) first(items *map[string]bool, id string) bool {
	if id == "" {
		return true
	}
	if (*items)[id] {
		return false
	}
	if *items == nil {
		*items = map[string]bool{}
	}
	d.hold(len(id))
	(*items)[id] = true
	return true
}

func raw(n Notification) []agent.Event {
	line, err := json.Marshal(jsonrpc.Message{Method: n.Method, Params: n.Params})
	if err != nil {
		line = []byte(n.Method)
	}
	return []agent.Event{{Kind: agent.KindRaw, Text: string(line)}}
}

func (d *decoder) delta(kind agent.Kind, id, text string) []agent.Event {
	if d.over[id] {
		return []agent.Event{{Kind: agent.KindHeartbeat}}
	}
	d.first(&d.streamed, id)
	return []agent.Event{{Kind: kind, MessageID: id, Delta: true, Text: text}}
}

// completed is the end of a turn. An older server sends no status; one that cannot
// be read is a failure.
func completed(p *notice, unread bool) []agent.Event {
	status, failure := "", (*problem)(nil)
	if p.Turn != nil {
		status, failure = p.Turn.Status, p.Turn.Error
	}
	e := agent.Event{Kind: agent.KindResult}
	switch status {
	case "", "completed":
		if unread {
			e.Failed, e.Text = true, "how the turn has ended cannot be read"
		}
	case "interrupted":
		e.Failed, e.Interrupted, e.Text = true, true, "the turn was interrupted"
	default:
		e.Failed, e.Text = true, "the turn ended as "+status
	}
	if failure != nil && !e.Interrupted {
		e.Failed, e.Text, e.Failure = true, failure.Message, failure.class()
	}
	return []agent.Event{e}
}

// started is what an item says when it begins.
func (d *decoder) started(i *item) []agent.Event {
	if name, input, ok := i.call(); ok {
		return []agent.Event{{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: i.ID, Name: name, Input: input}}}
	}
	if i.Type == "fileChange" {
		if d.proposed == nil {
			d.proposed = map[string][]agent.FileChange{}
		}
		files, size := i.files(false), len(i.ID)
		for _, f := range files {
			size += len(f.Path) + len(f.Action) + 64
		}
		if size <= maxHeld {
			d.hold(size)
			d.proposed[i.ID] = files
		}
	}
	return []agent.Event{{Kind: agent.KindHeartbeat}}
}

// files returns the files that an item changes, with their diffs if withDiffs is set.
func (i *item) files(withDiffs bool) []agent.FileChange {
	var files []agent.FileChange
	for _, c := range i.Changes {
		change := agent.FileChange{Path: c.Path, Action: c.Kind.Type}
		if withDiffs {
			c.set(&change)
		}
		files = append(files, change)
		if to := c.Kind.MovePath; to != "" {
			files = append(files, agent.FileChange{Path: to, Action: "add"})
		}
	}
	return files
}

// call returns the name and the input of an item that is the call of a tool.
func (i *item) call() (name string, input json.RawMessage, ok bool) {
	switch i.Type {
	case "commandExecution":
		return "command", object("command", i.Command), true
	case "mcpToolCall":
		return i.Server + "." + i.Tool, i.Arguments, true
	case "webSearch":
		return "web_search", object("query", i.Query), true
	}
	return "", nil, false
}

func object(name, value string) json.RawMessage {
	return encoded(map[string]json.RawMessage{name: encoded(value)})
}

// encoded returns value as JSON, or nil for an empty value.
func encoded[V string | []agent.FileChange | map[string]json.RawMessage](value V) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return text
}

// item returns the events of an item that has ended, nil for an unknown item.
func (d *decoder) item(i *item) []agent.Event {
	if name, _, ok := i.call(); ok {
		tool := &agent.Tool{ID: i.ID, Name: name, Output: agent.Plain(i.Output), ExitCode: i.ExitCode}
		switch {
		case i.Error != nil:
			tool.Output = agent.Plain(i.Error.Message)
		case i.Type == "mcpToolCall" && string(i.Result) != "null":
			tool.Output = agent.Plain(string(i.Result))
		}
		failed := i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0
		return []agent.Event{{Kind: agent.KindToolResult, Tool: tool, Failed: failed}}
	}
	streamed := d.streamed[i.ID]
	switch i.Type {
	case "agentMessage":
		if !streamed {
			return []agent.Event{{Kind: agent.KindText, MessageID: i.ID, Text: i.Text}}
		}
	case "reasoning":
		if text := i.thoughts(); text != "" && !streamed {
			return []agent.Event{{Kind: agent.KindThinking, MessageID: i.ID, Text: text}}
		}
	case "fileChange":
		failed := i.Status == "failed" || i.Status == "declined"
		return []agent.Event{{Kind: agent.KindFileChange, Failed: failed, Changes: i.files(true)}}
	case "userMessage":
	default:
		return nil
	}
	return []agent.Event{{Kind: agent.KindHeartbeat}}
}

func (i *item) thoughts() string {
	parts := i.Summary
	for _, c := range i.Content {
		var text string
		if json.Unmarshal(c, &text) == nil {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

func plan(p *notice) []agent.Event {
	e := agent.Event{Kind: agent.KindPlan}
	for _, s := range p.Plan {
		status := s.Status
		if status == "inProgress" {
			status = "in_progress"
		}
		e.Plan = append(e.Plan, agent.PlanStep{Text: s.Step, Status: status})
	}
	return []agent.Event{e}
}

// usage is what the turns here have consumed up to now; the server's count is that of
// the thread, also when it resumes one.
func (d *decoder) usage(p *notice, running string) []agent.Event {
	if p.TokenUsage == nil {
		return []agent.Event{{Kind: agent.KindHeartbeat}}
	}
	t := p.TokenUsage.Total
	here := running != "" && (p.TurnID == "" || p.TurnID == running)
	if !here && !d.counted {
		d.before = agent.Usage{Input: t.Input, Cached: t.Cached, Output: t.Output, Reasoning: t.Reasoning}
		return []agent.Event{{Kind: agent.KindHeartbeat}}
	}
	d.counted = true
	return []agent.Event{{Kind: agent.KindUsage, Usage: &agent.Usage{
		Input: t.Input - d.before.Input, Cached: t.Cached - d.before.Cached,
		Output: t.Output - d.before.Output, Reasoning: t.Reasoning - d.before.Reasoning,
	}}}
}

// events is a request to the model that failed; it does not end the turn.
func (p *problem) events(willRetry bool) []agent.Event {
	text := p.Message
	if p.Details != "" {
		text += " (" + p.Details + ")"
	}
	kind := agent.KindWarning
	if willRetry {
		kind = agent.KindRetry
	}
	return []agent.Event{{Kind: kind, Text: text, Failure: p.class()}}
}

// class reads the class of a failure from what the server calls it: a word, or
// an object of one member that holds the status of HTTP.
func (p *problem) class() agent.Failure {
	var word string
	if json.Unmarshal(p.Info, &word) == nil {
		switch word {
		case "unauthorized":
			return agent.FailureAuthentication
		case "usageLimitExceeded", "sessionBudgetExceeded":
			return agent.FailureQuota
		}
		return ""
	}
	var detailed map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(p.Info, &detailed) != nil {
		return ""
	}
	for _, d := range detailed {
		switch d.Status {
		case 401, 403:
			return agent.FailureAuthentication
		case 429:
			return agent.FailureQuota
		}
	}
	return ""
}

// approval is the event of an approval request. Everything that an accept would allow is
// in the tool's input.
func (d *decoder) approval(q Request, start engine.Start) agent.Event {
	var p struct {
		ItemID      string          `json:"itemId"`
		Reason      string          `json:"reason"`
		Command     string          `json:"command"`
		Workdir     string          `json:"cwd"`
		GrantRoot   json.RawMessage `json:"grantRoot"`              // to be written from now on
		Network     json.RawMessage `json:"networkApprovalContext"` // to be reached
		Permissions json.RawMessage `json:"additionalPermissions"`
	}
	e := agent.Event{Kind: agent.KindApproval}
	if json.Unmarshal(q.Params, &p) != nil {
		return e
	}
	e.Text = p.Reason
	e.Tool = &agent.Tool{ID: p.ItemID, Name: "file_change"}
	isNull := func(value json.RawMessage) bool { return value == nil || string(value) == "null" }
	alone := isNull(p.GrantRoot) && isNull(p.Network) && isNull(p.Permissions) // it allows nothing else
	input := map[string]json.RawMessage{"grantRoot": p.GrantRoot, "networkApprovalContext": p.Network, "additionalPermissions": p.Permissions}
	if q.Method == CommandApproval {
		e.Tool.Name, e.Tool.Kind = "command", agent.ToolExecute
		input["command"] = encoded(p.Command)
		if start.Workdir != "" && p.Workdir != "" && p.Workdir != start.Workdir {
			input["cwd"] = encoded(p.Workdir)
		}
		if alone && start.InWorkdir(p.Workdir) {
			e.Tool.Command = p.Command
		}
	} else if files, ok := d.proposal(p.ItemID); ok {
		input["changes"] = encoded(files)
		if e.Tool.Kind = kindOf(files); alone {
			engine.SetFiles(e.Tool, paths(files))
		}
	} else {
		e.Tool.Kind = agent.ToolEdit
		input["changes"] = encoded("the agent does not name the files")
	}
	maps.DeleteFunc(input, func(_ string, value json.RawMessage) bool { return isNull(value) })
	if len(input) > 0 {
		e.Tool.Input = encoded(input)
	}
	return e
}

// kindOf returns the kind of a change of files.
func kindOf(files []agent.FileChange) agent.ToolKind {
	if slices.ContainsFunc(files, func(f agent.FileChange) bool { return f.Action == "delete" }) {
		return agent.ToolDelete
	}
	return agent.ToolEdit
}

func paths(files []agent.FileChange) []string {
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = f.Path
	}
	return list
}

// proposal returns the files that an item of any thread would change.
func (d *decoder) proposal(item string) ([]agent.FileChange, bool) {
	if files, ok := d.proposed[item]; ok {
		return files, true
	}
	for _, other := range d.others {
		if files, ok := other.proposal(item); ok {
			return files, true
		}
	}
	return nil, false
}
