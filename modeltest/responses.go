package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// responses is the OpenAI Responses API, as OpenAI and Ollama serve it.
type responses struct{}

func (responses) name() string { return "openai" }

func (responses) matches(r *Request) bool { return strings.HasSuffix(r.Path, "/responses") }

// responsesRequest is the part of a request body that tests ask about.
type responsesRequest struct {
	Model        string `json:"model"`
	Instructions string `json:"instructions"`
	Stream       bool   `json:"stream"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Verbosity string `json:"verbosity"`
	} `json:"text"`
	Tools []responsesTool `json:"tools"`
	Input responsesInput  `json:"input"`
}

type responsesTool struct {
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Tools []responsesTool `json:"tools"` // of a namespace
}

type responsesItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content contentParts    `json:"content"`
	CallID  string          `json:"call_id"`
	Output  contentParts    `json:"output"`
	Tools   []responsesTool `json:"tools"`
}

// responsesInput is a list of items or one text of the user.
type responsesInput []responsesItem

func (in *responsesInput) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text contentParts
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*in = responsesInput{{Type: "message", Role: "user", Content: text}}
		return nil
	}
	return json.Unmarshal(data, (*[]responsesItem)(in))
}

func (responses) parse(r *Request) (content, error) {
	var req responsesRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return content{}, fmt.Errorf("the body is not a Responses request: %w", err)
	}
	c := content{model: req.Model, effort: req.Reasoning.Effort, verbosity: req.Text.Verbosity, stream: req.Stream}
	if req.Instructions != "" {
		c.messages = append(c.messages, Message{Role: "system", Texts: []string{req.Instructions}})
	}
	c.addTools(req.Tools, "")
	for _, item := range req.Input {
		switch item.Type {
		case "message", "":
			c.messages = append(c.messages, item.Content.message(item.Role))
		case "function_call_output", "custom_tool_call_output":
			c.results = append(c.results, ToolResult{ID: item.CallID, Output: strings.Join(item.Output.texts, "")})
		}
		// Some models get their tools in the conversation.
		c.addTools(item.Tools, "")
	}
	return c, nil
}

// addTools adds tools of a namespace, "" for none.
func (c *content) addTools(tools []responsesTool, namespace string) {
	for _, t := range tools {
		switch {
		case t.Type == "namespace":
			c.addTools(t.Tools, t.Name)
		case t.Name != "":
			c.tools = append(c.tools, tool{name: t.Name, freeText: t.Type == "custom", namespace: namespace})
		}
	}
}

func (responses) refuse(w http.ResponseWriter, e HTTPError) {
	var document struct {
		Error responsesError `json:"error"`
	}
	document.Error = responsesError{Message: e.Message, Type: "error", Code: strings.ToLower(strings.ReplaceAll(http.StatusText(e.status()), " ", "_"))}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings always marshal
	}
	sendError(w, e, body)
}

type responsesError struct {
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code"`
}
