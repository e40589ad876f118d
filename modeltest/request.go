package modeltest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Request is one HTTP request as the server received it. It holds
// credentials, so that tests can prove where keys went: do not log it. A
// recorded request is never changed, so it may be read by several goroutines.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	// Header holds the headers with canonical names; see [http.Header].
	Header http.Header
	// Body is the whole body.
	Body []byte

	// Provider is the form of the model request: "openai", "openai-chat",
	// "anthropic" or "gemini". It is empty for side requests.
	Provider string

	content content
}

// content is what a provider's form says, in the form all share.
type content struct {
	model, effort, verbosity string
	messages                 []Message
	results                  []ToolResult
	tools                    []tool
	stream                   bool
}

type tool struct {
	namespace string // of the Responses API
	name      string
	freeText  bool
}

// A Message is one message of the conversation the model is sent.
type Message struct {
	// Role is "system", "developer", "user" or "assistant", whatever the
	// provider calls it.
	Role string
	// Texts are the texts of the message, one a content part.
	Texts []string
	// Files are the images and other files of the message.
	Files []File
}

// A ToolResult is what the agent answered to a [ToolCall].
type ToolResult struct {
	ID     string
	Output string
}

// IsModel reports whether the request is a model request, which consumes a
// reply of the script.
func (r *Request) IsModel() bool { return r.Provider != "" }

// Model returns the name of the model that was asked for.
func (r *Request) Model() string { return r.content.model }

// Effort returns the reasoning effort (of Gemini the thinking level), or "" when
// the request has none.
func (r *Request) Effort() string { return r.content.effort }

// Verbosity returns the verbosity, or "" when the request has none.
func (r *Request) Verbosity() string { return r.content.verbosity }

// Messages returns the conversation in order, the system instructions first.
// Tool calls and their results are not part of it.
func (r *Request) Messages() []Message { return r.content.messages }

// ToolResults returns the results of all tool calls in the request, in order.
// Agents send the whole conversation, so it includes the results of earlier
// calls.
func (r *Request) ToolResults() []ToolResult { return r.content.results }

// Tools returns the names of the tools the model may call.
func (r *Request) Tools() []string {
	names := make([]string, len(r.content.tools))
	for i, t := range r.content.tools {
		names[i] = t.name
	}
	return names
}

// Texts returns the texts of all messages with one of the roles, in order; of
// all messages when no role is given.
func (r *Request) Texts(roles ...string) []string {
	var texts []string
	for _, m := range r.content.messages {
		if len(roles) == 0 || slices.Contains(roles, m.Role) {
			texts = append(texts, m.Texts...)
		}
	}
	return texts
}

// Files returns the images and other files in all messages, in order. Those in results
// of tools are not part of it.
func (r *Request) Files() (files []File) {
	for _, m := range r.content.messages {
		files = append(files, m.Files...)
	}
	return files
}

// Count returns how often marker occurs in all messages together. Tests use it
// to prove that instructions were delivered once.
func (r *Request) Count(marker string) int {
	n := 0
	for _, text := range r.Texts() {
		n += strings.Count(text, marker)
	}
	return n
}

// namespace returns the namespace of the first tool with this name, in which a model has
// to call it. Models call those of "functions" by their names alone.
func (r *Request) namespace(name string) string {
	for _, t := range r.content.tools {
		if t.name == name && t.namespace != "functions" {
			return t.namespace
		}
	}
	return ""
}

// takesText reports whether the named tool takes free text instead of JSON.
func (r *Request) takesText(name string) bool {
	for _, t := range r.content.tools {
		if t.name == name {
			return t.freeText
		}
	}
	return false
}
