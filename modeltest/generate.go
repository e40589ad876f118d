package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// generate is Gemini's generateContent, streaming and as one document. The
// model and the method are in the path: "…/models/MODEL:METHOD".
type generate struct{}

const (
	generateStream = "streamGenerateContent"
	generateWhole  = "generateContent"
)

func (generate) name() string { return "gemini" }

func (generate) matches(r *Request) bool {
	switch _, method := generateTarget(r); method {
	case generateStream:
		return true
	case generateWhole:
		return choiceSchema(r) == nil
	}
	return false
}

// generateTarget returns the last element of the path in its two parts.
func generateTarget(r *Request) (model, method string) {
	model, method, _ = strings.Cut(path.Base(r.Path), ":")
	return model, method
}

// generateRequest is the part of a request body that tests ask about.
type generateRequest struct {
	System   generateContent   `json:"systemInstruction"`
	Contents []generateContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Thinking struct {
			Level string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
		Schema *choice `json:"responseJsonSchema"`
	} `json:"generationConfig"`
}

type generateContent struct {
	Role  string         `json:"role,omitempty"`
	Parts []generatePart `json:"parts"`
}

type generatePart struct {
	Text     *string           `json:"text,omitempty"`
	Inline   *inlineData       `json:"inlineData,omitempty"`
	Thought  bool              `json:"thought,omitempty"`
	Call     *functionCall     `json:"functionCall,omitempty"`
	Response *functionResponse `json:"functionResponse,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string          `json:"id"`
	Response json.RawMessage `json:"response"`
}

func (generate) parse(r *Request) (content, error) {
	var req generateRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return content{}, fmt.Errorf("the body is not a generateContent request: %w", err)
	}
	model, method := generateTarget(r)
	c := content{model: model, effort: req.Config.Thinking.Level, stream: method == generateStream}
	if parts := req.System.parts(); !parts.empty() {
		c.messages = append(c.messages, parts.message("system"))
	}
	for _, t := range req.Tools {
		for _, f := range t.Functions {
			c.tools = append(c.tools, tool{name: f.Name})
		}
	}
	for _, m := range req.Contents {
		for _, part := range m.Parts {
			if part.Response != nil {
				c.results = append(c.results, ToolResult{ID: part.Response.ID, Output: part.Response.text()})
			}
		}
		role := m.Role
		if role == "model" {
			role = "assistant"
		}
		// Others hold tool calls and their results alone.
		if parts := m.parts(); !parts.empty() {
			c.messages = append(c.messages, parts.message(role))
		}
	}
	return c, nil
}

// parts returns the texts, without thoughts, and the files.
func (c generateContent) parts() (parts contentParts) {
	for _, part := range c.Parts {
		if !part.Thought {
			parts.add(&contentPart{Text: part.Text, Inline: part.Inline})
		}
	}
	return parts
}

// text returns the output or the error in a response; of any other response the
// JSON.
func (r *functionResponse) text() string {
	var said struct {
		Output *string `json:"output"`
		Error  *string `json:"error"`
	}
	if err := json.Unmarshal(r.Response, &said); err == nil {
		switch {
		case said.Output != nil:
			return *said.Output
		case said.Error != nil:
			return *said.Error
		}
	}
	return string(r.Response)
}

type generateError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
}

// generateFailure is the document that holds an error.
type generateFailure struct {
	Error generateError `json:"error"`
}

// generateStatuses are Google's words for HTTP statuses.
var generateStatuses = map[int]string{
	http.StatusBadRequest:          "INVALID_ARGUMENT",
	http.StatusUnauthorized:        "UNAUTHENTICATED",
	http.StatusForbidden:           "PERMISSION_DENIED",
	http.StatusNotFound:            "NOT_FOUND",
	http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable:  "UNAVAILABLE",
	http.StatusGatewayTimeout:      "DEADLINE_EXCEEDED",
}

func (generate) refuse(w http.ResponseWriter, e HTTPError) {
	document := generateFailure{generateError{Code: e.status(), Message: e.Message, Status: generateStatuses[e.status()]}}
	if document.Error.Status == "" {
		document.Error.Status = "UNKNOWN"
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	sendError(w, e, body)
}

// choice is as much of a JSON schema as is needed for an answer that fits it.
type choice struct {
	Type       string            `json:"type"`
	Enum       []string          `json:"enum"`
	Minimum    int               `json:"minimum"`
	Properties map[string]choice `json:"properties"`
}

// choiceSchema returns the schema of the answer in a request that asks a small
// model to choose: Gemini CLI chooses the model in this way. It returns nil for
// any other request.
func choiceSchema(r *Request) *choice {
	var req generateRequest
	if json.Unmarshal(r.Body, &req) != nil {
		return nil
	}
	return req.Config.Schema
}

// instance returns a JSON value that fits the schema: the first of an enum, the
// smallest positive number, the empty text.
func (c choice) instance() json.RawMessage {
	if len(c.Enum) > 0 {
		return marshal(c.Enum[0])
	}
	switch strings.ToLower(c.Type) {
	case "object":
		fields := map[string]json.RawMessage{}
		for name, property := range c.Properties {
			fields[name] = property.instance()
		}
		return marshal(fields)
	case "string":
		return marshal("")
	case "number", "integer":
		return marshal(max(1, c.Minimum))
	case "array":
		return marshal([]string{})
	}
	return marshal(false)
}

// answerChoice answers a request for a choice.
func answerChoice(w http.ResponseWriter, r *Request, schema choice) {
	a := generate{}.answer(w, r, Usage{})
	a.text([]string{string(schema.instance())})
	a.finish()
}
