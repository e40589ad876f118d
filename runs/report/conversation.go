package report

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

const (
	// longText bounds one text of a conversation on the page, in bytes.
	longText = 64 << 10
	// longMessage bounds a message while its pieces arrive.
	longMessage = 1 << 20
	// itemSize bounds an item without its texts.
	itemSize = 160
	// noteSize bounds the note in place of an output.
	noteSize = 48
	// restSize bounds a conversation without items, problems and messages.
	restSize = 160
	// messageSize bounds a message without its texts.
	messageSize = 64
)

// An item is one element of a conversation on the page. Times are milliseconds since
// the start of the run.
type item struct {
	Kind string `json:"kind"`
	At   int64  `json:"at"`

	Text    string `json:"text,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Attempt and MaxAttempts are those of a retry.
	Attempt     int `json:"attempt,omitempty"`
	MaxAttempts int `json:"max_attempts,omitempty"`

	Tool     string `json:"tool,omitempty"`
	Input    string `json:"input,omitempty"`
	Output   string `json:"output,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
	// Until is the time of the result of a tool call, nil without one.
	Until *int64 `json:"until,omitempty"`

	Plan    []agent.PlanStep   `json:"plan,omitempty"`
	Changes []agent.FileChange `json:"changes,omitempty"`
	// Subagent is the name of the tool call that started the agent of this item.
	Subagent string `json:"subagent,omitempty"`

	message string // ID of the message whose text comes in pieces
	pieces  []byte
	dropped int // bytes of it that came after longMessage
	tail    bool
	gone    bool // it is left out
}

// size bounds the item in JSON, in bytes. An item without its output yet includes the
// note in place of an output.
func (i *item) size() int {
	n := itemSize + quotedSize(i.Text) + quotedSize(i.Failure) + quotedSize(i.Tool) + quotedSize(i.Input) +
		quotedSize(i.Output) + quotedSize(i.Subagent)
	for _, step := range i.Plan {
		n += quotedSize(step.Text) + quotedSize(step.Status) + 20
	}
	for _, change := range i.Changes {
		n += quotedSize(change.Path) + quotedSize(change.Action) + quotedSize(change.Diff) + 50
	}
	if i.Until == nil && (i.Kind == string(agent.KindToolCall) || i.Kind == string(agent.KindToolResult)) {
		n += noteSize
	}
	return n
}

// A conversation has the messages and actions of a run. One that is longer than the limit
// keeps its beginning and its end.
type conversation struct {
	Items []*item `json:"items"`
	// Left is the number of items left out after the first From of Items.
	Left int `json:"left,omitempty"`
	From int `json:"from,omitempty"`
	// Untimed reports that the record has no times.
	Untimed bool `json:"untimed,omitempty"`
	// Problem is why the record could not be read to its end.
	Problem string `json:"problem,omitempty"`
	// Messages are those of the task's message bus, and MessagesProblem is why they
	// could not be read.
	Messages        []message `json:"messages,omitempty"`
	MessagesProblem string    `json:"messages_problem,omitempty"`

	limit, headSize, tailSize int
	ending                    []*item // the end of a long one

	start time.Time
	last  int64            // when the last entry was
	open  *item            // a text that may continue
	calls map[string]*item // calls without a result
	names map[string]string
	said  string // the last text of the agent
	seen  string // the session reported last
}

// readConversation reads the events of a run.
func readConversation(entries iter.Seq2[runs.Event, error], start time.Time, limit int) *conversation {
	c := &conversation{limit: limit, start: start, calls: map[string]*item{}, names: map[string]string{}}
	for entry, err := range entries {
		if err != nil {
			c.Problem = bounded(err.Error(), metadataText)
			break
		}
		c.add(&entry)
	}
	c.close()
	c.tailSize += restSize + quotedSize(c.Problem)
	c.makeRoom()
	c.From = len(c.Items)
	c.Items = append(c.Items, c.ending...)
	if c.Left == 0 {
		c.From = 0
	}
	return c
}

func (c *conversation) add(entry *runs.Event) {
	at := max(entry.Time.Sub(c.start).Milliseconds(), 0)
	if entry.Time.IsZero() {
		at, c.Untimed = c.last, true
	}
	c.last = at
	i := &item{Kind: string(entry.Kind), At: at, Failed: entry.Failed, Failure: line(string(entry.Failure), 80)}
	if entry.Subagent != "" {
		if i.Subagent = c.names[entry.Subagent]; i.Subagent == "" {
			i.Subagent = "a tool call"
		}
	}
	switch entry.Kind {
	case runs.KindMessage, agent.KindText, agent.KindThinking:
		c.addText(i, entry)
	case agent.KindToolCall:
		c.addCall(i, entry.Tool, entry.Delta)
	case agent.KindToolResult:
		c.addResult(i, entry.Tool)
	case agent.KindSessionStarted:
		c.addSession(i, entry)
	case agent.KindPlan:
		for _, step := range entry.Plan {
			i.Plan = append(i.Plan, agent.PlanStep{Text: line(step.Text, 2000), Status: line(step.Status, 40)})
		}
		c.put(i)
	case agent.KindFileChange:
		room := longText // for the diffs of all files
		for _, change := range entry.Changes {
			change.Path, change.Action = line(change.Path, 4000), line(change.Action, 40)
			change.Diff, _ = cut(plain(change.Diff), room)
			room = max(room-len(change.Diff), 0)
			i.Changes = append(i.Changes, change)
		}
		c.put(i)
	case agent.KindApproval:
		i.Text = shown(entry.Text)
		if entry.Tool != nil {
			i.Tool, i.Input = line(entry.Tool.Name, 200), shown(string(entry.Tool.Input))
		}
		c.put(i)
	case agent.KindQuestion:
		i.Text = shown(questionText(&entry.Event))
		c.put(i)
	case agent.KindRetry:
		i.Text, i.Attempt, i.MaxAttempts = shown(entry.Text), entry.Attempt, entry.MaxAttempts
		c.put(i)
	case agent.KindResult:
		c.addEnd(i, entry)
	case agent.KindWarning, agent.KindRaw:
		i.Text = shown(entry.Text)
		c.put(i)
	}
}

// questionText returns the questions of the agent as a text, their options as lists.
func questionText(e *agent.Event) string {
	var text strings.Builder
	text.WriteString(e.Text)
	for _, q := range e.Questions {
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString(q.Text)
		text.WriteString("\n")
		for n, o := range q.Options {
			fmt.Fprintf(&text, "\n%d. %s", n+1, o.Label)
			if o.Description != "" {
				text.WriteString(": " + o.Description)
			}
		}
	}
	return text.String()
}

// shown returns an agent's text for an item.
func shown(s string) string {
	kept, _ := cut(plain(s), longText)
	return kept
}

// fitted is shown for an output with the given room in JSON.
func fitted(s string, room int) string {
	s = plain(s)
	for limit := min(longText, max(room, 0)); ; limit = limit * 7 / 8 {
		kept, _ := cut(s, limit)
		if limit == 0 || quotedSize(kept) <= room {
			return kept
		}
	}
}

// addText adds a text, or joins it to the one that it continues.
func (c *conversation) addText(i *item, entry *runs.Event) {
	o := c.open
	if o == nil || !entry.Delta || o.Kind != i.Kind || o.message != entry.MessageID || o.Subagent != i.Subagent {
		c.close()
		i.message = entry.MessageID
		c.open, o = i, i
	}
	fits := min(len(entry.Text), longMessage-len(o.pieces))
	o.pieces = append(o.pieces, entry.Text[:fits]...)
	o.dropped += len(entry.Text) - fits
}

// close ends the open text.
func (c *conversation) close() {
	i := c.open
	if i == nil {
		return
	}
	c.open = nil
	text := string(i.pieces)
	if i.Kind == string(agent.KindText) && i.Subagent == "" {
		c.said = text
	}
	i.Text = shown(text)
	if i.dropped > 0 {
		i.Text += "\n… " + size(int64(i.dropped)) + " left out …"
	}
	i.pieces = nil
	if i.Text != "" {
		c.insert(i)
	}
}

// addCall adds a call. If again is set, it replaces the call with the same ID.
func (c *conversation) addCall(i *item, tool *agent.Tool, again bool) {
	if tool == nil {
		return
	}
	if call := c.calls[tool.ID]; call != nil && tool.ID != "" {
		if again && !call.gone {
			before := call.size()
			call.Tool, call.Input = line(tool.Name, 200), shown(string(tool.Input))
			c.names[tool.ID] = call.Tool
			c.grow(call, call.size()-before)
		}
		return // shown before
	}
	i.Tool, i.Input = line(tool.Name, 200), shown(string(tool.Input))
	c.put(i)
	if tool.ID != "" {
		c.calls[tool.ID] = i
		c.names[tool.ID] = i.Tool
	}
}

// addResult adds a result to its call, or as an item without one.
func (c *conversation) addResult(result *item, tool *agent.Tool) {
	if tool == nil {
		return
	}
	call := c.calls[tool.ID]
	if call == nil {
		result.Tool = line(tool.Name, 200)
		call = result
		c.put(call)
	}
	delete(c.calls, tool.ID)
	if call.gone {
		return
	}
	before := call.size()
	until := result.At
	call.Until, call.Failed = &until, result.Failed
	if tool.ExitCode != nil {
		code := *tool.ExitCode
		call.ExitCode = &code
	}
	room := c.limit / 4 // the end makes room
	if !call.tail {
		room = c.limit*3/4 - (c.headSize - before)
	}
	call.Output = fitted(tool.Output.String(), room-call.size())
	c.grow(call, call.size()-before)
}

// addSession adds the session's ID and model if they changed.
func (c *conversation) addSession(i *item, entry *runs.Event) {
	i.Text = line(entry.SessionID, 200)
	if entry.Model != "" {
		i.Text += ", model " + line(entry.Model, 200)
	}
	if i.Text != c.seen && i.Text != "" {
		c.seen = i.Text
		c.put(i)
	}
}

// addEnd adds the end of a turn, without a final answer that the agent said before.
func (c *conversation) addEnd(i *item, entry *runs.Event) {
	c.close()
	if entry.Interrupted {
		i.Failure = "interrupted"
	}
	if entry.Failed || entry.Text != c.said {
		i.Text = shown(entry.Text)
	}
	c.put(i)
}

// put adds a complete item, after the open text.
func (c *conversation) put(i *item) {
	c.close()
	c.insert(i)
}

func (c *conversation) insert(i *item) {
	if n := i.size(); len(c.ending) == 0 && c.headSize+n <= c.limit*3/4 {
		c.Items = append(c.Items, i)
		c.headSize += n
		return
	}
	i.tail = true
	c.ending = append(c.ending, i)
	c.grow(i, i.size())
}

// grow adds to the size of an item.
func (c *conversation) grow(i *item, n int) {
	if !i.tail {
		c.headSize += n
		return
	}
	c.tailSize += n
	c.makeRoom()
}

// makeRoom leaves out the beginning of an end that is too long.
func (c *conversation) makeRoom() {
	for c.tailSize > c.limit/4 && len(c.ending) > 1 {
		first := c.ending[0]
		c.tailSize -= first.size()
		*first = item{gone: true} // its result may follow
		c.ending[0] = nil
		c.ending = c.ending[1:]
		c.Left++
	}
}
