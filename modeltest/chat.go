package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chat is the OpenAI Chat Completions API, which many providers serve.
type chat struct{}

func (chat) name() string { return "openai-chat" }

func (chat) matches(r *Request) bool { return strings.HasSuffix(r.Path, "/chat/completions") }

// chatRequest is the part of a request body that tests ask about.
type chatRequest struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	Effort    string `json:"reasoning_effort"`
	Verbosity string `json:"verbosity"`
	Tools     []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role       string       `json:"role"`
		Content    contentParts `json:"content"`
		ToolCallID string       `json:"tool_call_id"`
	} `json:"messages"`
}

func (chat) parse(r *Request) (content, error) {
	var req chatRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return content{}, fmt.Errorf("the body is not a Chat Completions request: %w", err)
	}
	c := content{model: req.Model, effort: req.Effort, verbosity: req.Verbosity, stream: req.Stream}
	for _, t := range req.Tools {
		c.tools = append(c.tools, tool{name: t.Function.Name})
	}
	for _, m := range req.Messages {
		switch {
		case m.Role == "tool":
			c.results = append(c.results, ToolResult{ID: m.ToolCallID, Output: strings.Join(m.Content.texts, "")})
		case !m.Content.empty(): // others hold tool calls alone
			c.messages = append(c.messages, m.Content.message(m.Role))
		}
	}
	return c, nil
}

// refuse is that of the Responses API: it is the same service.
func (chat) refuse(w http.ResponseWriter, e HTTPError) { responses{}.refuse(w, e) }
