package more

import (
	"bytes"
	"encoding/json"
	"github.com/busdk/bus-agent/registry/described"
	"net/http"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A dialect appends the events of one line of a CLI's output. It reports false for a line
// that it does not know. It is a formatters.Decoder.
type dialect func(raw []byte, events []agent.Event) ([]agent.Event, bool)

func (d dialect) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	before := len(events)
	events, known := d(raw, events)
	if !known {
		return append(events[:before], agent.Event{Kind: agent.KindRaw, Text: string(raw)})
	}
	if len(events) == before {
		events = append(events, agent.Event{Kind: agent.KindHeartbeat})
	}
	return events
}

// content is what a message or a tool's result contains: a text, or a list of parts.
type content []part

// A part is one part of a message. The members of parts other than texts depend on the
// CLI.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`

	Thinking string `json:"thinking"` // thinking

	ID    string          `json:"id"` // tool_use
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string  `json:"tool_use_id"` // tool_result
	Content   content `json:"content"`
	IsError   bool    `json:"is_error"`
}

// UnmarshalJSON accepts a text as a list with one part.
func (c *content) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*c = content{{Type: "text"}}
		return json.Unmarshal(raw, &(*c)[0].Text)
	}
	return json.Unmarshal(raw, (*[]part)(c))
}

// text returns the texts of c, each on a new line.
func (c content) text() string {
	var texts []string
	for _, p := range c {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func text(messageID, text string) agent.Event {
	return agent.Event{Kind: agent.KindText, MessageID: messageID, Text: text}
}

func thinking(messageID, text string) agent.Event {
	return agent.Event{Kind: agent.KindThinking, MessageID: messageID, Text: text}
}

func toolCall(id, name string, input json.RawMessage) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: id, Name: name, Input: input}}
}

func toolResult(id, output string, failed bool) agent.Event {
	return agent.Event{Kind: agent.KindToolResult, Failed: failed, Tool: &agent.Tool{ID: id, Output: agent.Plain(output)}}
}

// failed is the end of a turn with an error.
func failed(reason string) agent.Event {
	return agent.Event{Kind: agent.KindResult, Failed: true, Text: reason}
}

// failureOf returns the class of a failure with an HTTP status.
func failureOf(status int) agent.Failure {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return agent.FailureAuthentication
	case http.StatusTooManyRequests:
		return agent.FailureQuota
	}
	return ""
}

// add adds the tokens of one answer of the model to those of the run.
func add(sum *agent.Usage, u agent.Usage) {
	sum.Input += u.Input
	sum.Cached += u.Cached
	sum.Output += u.Output
	sum.Reasoning += u.Reasoning
}

// used returns the event of the tokens of the run, and none if there are no tokens.
func used(sum agent.Usage) []agent.Event {
	if sum == (agent.Usage{}) {
		return nil
	}
	return []agent.Event{{Kind: agent.KindUsage, Usage: &sum}}
}

// efforts returns the argument, of elements in which {} is the effort, of each reasoning
// effort. Without elements it has no arguments.
func efforts(args ...string) map[agent.ReasoningEffort]described.Setting {
	all := map[agent.ReasoningEffort]described.Setting{}
	for _, effort := range agent.Efforts() {
		if len(args) == 0 {
			all[effort] = described.Setting{}
			continue
		}
		argument := make(described.Argument, len(args))
		for i, arg := range args {
			argument[i] = strings.ReplaceAll(arg, "{}", string(effort))
		}
		all[effort] = described.Setting{Args: []described.Argument{argument}}
	}
	return all
}
