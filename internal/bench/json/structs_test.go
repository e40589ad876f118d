package json

import (
	stdjson "encoding/json"

	"github.com/bytedance/sonic"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// Candidates that fill a struct.

type claudeLine struct {
	Type    string            `json:"type"`
	Subtype string            `json:"subtype"`
	Session string            `json:"session_id"`
	Parent  string            `json:"parent_tool_use_id"`
	Tool    string            `json:"tool_name"`
	Message claudeMessage     `json:"message"`
	Event   claudeStreamEvent `json:"event"`
	Result  string            `json:"result"`
}

type claudeMessage struct {
	ID      string        `json:"id"`
	Content []claudeBlock `json:"content"`
}

type claudeBlock struct {
	Type     string             `json:"type"`
	Text     string             `json:"text"`
	Thinking string             `json:"thinking"`
	ID       string             `json:"id"`
	ToolUse  string             `json:"tool_use_id"`
	Name     string             `json:"name"`
	Input    stdjson.RawMessage `json:"input"`
	Content  stdjson.RawMessage `json:"content"`
}

type claudeStreamEvent struct {
	Type    string        `json:"type"`
	Message claudeMessage `json:"message"`
	Delta   claudeBlock   `json:"delta"`
	Block   claudeBlock   `json:"content_block"`
}

// claudeTexts is a line whose message, or the content of it, is a text.
type claudeTexts struct {
	Type    string             `json:"type"`
	Subtype string             `json:"subtype"`
	Session string             `json:"session_id"`
	Parent  string             `json:"parent_tool_use_id"`
	Tool    string             `json:"tool_name"`
	Message stdjson.RawMessage `json:"message"`
}

type codexLine struct {
	Type    string    `json:"type"`
	Thread  string    `json:"thread_id"`
	Message string    `json:"message"`
	Item    codexItem `json:"item"`
}

type codexItem struct {
	ID        string             `json:"id"`
	Type      string             `json:"type"`
	Text      string             `json:"text"`
	Command   string             `json:"command"`
	Tool      string             `json:"tool"`
	Output    stdjson.RawMessage `json:"aggregated_output"`
	Result    stdjson.RawMessage `json:"result"`
	Arguments stdjson.RawMessage `json:"arguments"`
}

type geminiLine struct {
	Type       string             `json:"type"`
	Session    string             `json:"session_id"`
	Role       string             `json:"role"`
	Content    string             `json:"content"`
	Message    string             `json:"message"`
	Tool       string             `json:"tool_id"`
	Name       string             `json:"tool_name"`
	Output     stdjson.RawMessage `json:"output"`
	Parameters stdjson.RawMessage `json:"parameters"`
}

// structs makes a candidate of an Unmarshal.
func structs(unmarshal func([]byte, any) error) func() reader {
	return func() reader {
		return func(shape corpus.Shape, raw []byte, n *needs) error {
			switch shape {
			case corpus.Claude:
				var l claudeLine
				if err := unmarshal(raw, &l); err != nil {
					return texts(unmarshal, raw, n)
				}
				l.needs(n)
			case corpus.Codex:
				var l codexLine
				if err := unmarshal(raw, &l); err != nil {
					return err
				}
				l.needs(n)
			case corpus.Gemini:
				var l geminiLine
				if err := unmarshal(raw, &l); err != nil {
					return err
				}
				*n = needs{
					Type: l.Type, Kind: l.Role, Session: l.Session, Text: l.Content + l.Message, Tool: l.Tool, Name: l.Name,
					Output: located{bytes: l.Output}, Input: located{bytes: l.Parameters},
				}
			}
			return nil
		}
	}
}

func (l *claudeLine) needs(n *needs) {
	*n = needs{Type: l.Type, Kind: l.Subtype, Session: l.Session, Parent: l.Parent, Name: l.Tool + l.Event.Type, Text: l.Result, Message: l.Message.ID}
	if l.Event.Message.ID != "" {
		n.Message = l.Event.Message.ID
	}
	l.Event.Delta.needs(n)
	l.Event.Block.needs(n)
	for i := range l.Message.Content {
		l.Message.Content[i].needs(n)
	}
}

func (b *claudeBlock) needs(n *needs) {
	set(&n.Kind, b.Type)
	set(&n.Text, b.Text)
	set(&n.Text, b.Thinking)
	set(&n.Tool, b.ID)
	set(&n.Tool, b.ToolUse)
	set(&n.Name, b.Name)
	if b.Input != nil {
		n.Input.bytes = b.Input
	}
	if b.Content != nil {
		n.Output.bytes = b.Content
	}
}

func set(field *string, s string) {
	if s != "" {
		*field = s
	}
}

func (l *codexLine) needs(n *needs) {
	*n = needs{Type: l.Type, Session: l.Thread, Text: l.Message, Message: l.Item.ID, Kind: l.Item.Type, Name: l.Item.Command + l.Item.Tool}
	set(&n.Text, l.Item.Text)
	n.Input.bytes = l.Item.Arguments
	n.Output.bytes = l.Item.Output
	if l.Item.Result != nil {
		n.Output.bytes = l.Item.Result
	}
}

// texts reads a line of the claude shape that has a text where others have an
// object or a list.
func texts(unmarshal func([]byte, any) error, raw []byte, n *needs) error {
	var l claudeTexts
	if err := unmarshal(raw, &l); err != nil {
		return err
	}
	*n = needs{Type: l.Type, Kind: l.Subtype, Session: l.Session, Parent: l.Parent, Name: l.Tool}
	if unmarshal(l.Message, &n.Text) == nil {
		return nil
	}
	var m struct {
		ID      string `json:"id"`
		Content string `json:"content"`
	}
	err := unmarshal(l.Message, &m)
	n.Message, n.Text = m.ID, m.Content
	return err
}

func unmarshalV2(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }

var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

func unmarshalV2Lenient(b []byte, v any) error { return jsonv2.Unmarshal(b, v, lenient) }

func unmarshalGoccy(b []byte, v any) error { return goccy.Unmarshal(b, v) }

var (
	sonicFast = sonic.ConfigDefault
	sonicStd  = sonic.ConfigStd
)
