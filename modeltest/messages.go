package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages is the Anthropic Messages API.
type messages struct{}

func (messages) name() string { return "anthropic" }

func (messages) matches(r *Request) bool {
	return strings.HasSuffix(r.Path, "/messages")
}

// messagesRequest is the part of a request body that tests ask about.
type messagesRequest struct {
	Model        string       `json:"model"`
	Stream       bool         `json:"stream"`
	System       contentParts `json:"system"`
	OutputConfig struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    string        `json:"role"`
		Content messageBlocks `json:"content"`
	} `json:"messages"`
}

// messageBlocks is a list of content blocks, or one text.
type messageBlocks []messageBlock

type messageBlock struct {
	contentPart
	Type      string       `json:"type"`
	ToolUseID string       `json:"tool_use_id"`
	Content   contentParts `json:"content"`
}

func (b *messageBlocks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*b = messageBlocks{{contentPart: contentPart{Text: &text}}}
		return nil
	}
	return json.Unmarshal(data, (*[]messageBlock)(b))
}

func (messages) parse(r *Request) (content, error) {
	var req messagesRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return content{}, fmt.Errorf("the body is not a Messages request: %w", err)
	}
	c := content{model: req.Model, effort: req.OutputConfig.Effort, stream: req.Stream}
	if !req.System.empty() {
		c.messages = append(c.messages, req.System.message("system"))
	}
	for _, t := range req.Tools {
		c.tools = append(c.tools, tool{name: t.Name})
	}
	for _, m := range req.Messages {
		var parts contentParts
		for i := range m.Content {
			b := &m.Content[i]
			if b.Type == "tool_result" {
				c.results = append(c.results, ToolResult{ID: b.ToolUseID, Output: strings.Join(b.Content.texts, "")})
				continue
			}
			parts.add(&b.contentPart)
		}
		// Others hold tool calls and their results alone.
		if !parts.empty() {
			c.messages = append(c.messages, parts.message(m.Role))
		}
	}
	return c, nil
}

type messagesError struct {
	Type  string `json:"type"` // always "error"
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func newMessagesError(code, message string) messagesError {
	e := messagesError{Type: "error"}
	e.Error.Type, e.Error.Message = code, message
	return e
}

func (messages) refuse(w http.ResponseWriter, e HTTPError) {
	body, err := json.Marshal(newMessagesError(messagesCode(e.status()), e.Message))
	if err != nil {
		panic(err) // strings always marshal
	}
	sendError(w, e, body)
}

// messagesCode is Anthropic's name of a status.
func messagesCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}
