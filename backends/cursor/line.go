package cursor

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// line holds the members of every kind of line.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`

	UUID         string `json:"uuid"`         // only in lines of other runtimes
	APIKeySource any    `json:"apiKeySource"` // system init
	RequestID    any    `json:"request_id"`   // result

	Model       string   `json:"model"`         // system init
	Message     *message `json:"message"`       // assistant, user
	Text        string   `json:"text"`          // thinking
	Timestamp   int64    `json:"timestamp_ms"`  // assistant
	ModelCallID string   `json:"model_call_id"` // assistant

	CallID   string          `json:"call_id"` // tool_call
	ToolCall json.RawMessage `json:"tool_call"`

	IsError bool            `json:"is_error"` // result
	Result  string          `json:"result"`
	Usage   json.RawMessage `json:"usage"`
}

type message struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// text returns the texts of the blocks of a message.
func (m *message) text() string {
	var all strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			all.WriteString(block.Text)
		}
	}
	return all.String()
}

// tokens returns the usage in a result, which is not documented; newer versions send it.
func (l *line) tokens() *agent.Usage {
	var u *struct {
		Input      int64 `json:"inputTokens"`
		CacheRead  int64 `json:"cacheReadTokens"`
		CacheWrite int64 `json:"cacheWriteTokens"`
		Output     int64 `json:"outputTokens"`
	}
	if json.Unmarshal(l.Usage, &u) != nil || u == nil {
		return nil
	}
	return &agent.Usage{Input: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Output: u.Output}
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}
