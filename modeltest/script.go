package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// A Script decides what the model answers. It is called once for each model
// request, in the order they arrive and never twice at the same time. It should
// return at once; steps such as [Wait] and [Silence] hold an answer back.
//
// The request is complete and may be kept; it must not be changed.
type Script func(*Request) Reply

// Replies returns a script that gives each reply to one request, in order. A
// request after the last one gets [HTTPError] 400, which agents do not retry; its
// message reports the end of the script.
func Replies(replies ...Reply) Script {
	var mu sync.Mutex
	next := 0
	return func(*Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		if next == len(replies) {
			return Reply{HTTPError{
				Status:  http.StatusBadRequest,
				Message: fmt.Sprintf("modeltest: the script has %d replies and all are used", len(replies)),
			}}
		}
		next++
		return replies[next-1]
	}
}

// Always returns a script that gives the same reply to every request.
func Always(reply Reply) Script {
	return func(*Request) Reply { return reply }
}

// A Reply is the answer to one model request, played step by step. An answer
// that ends without [Cut], [Fail] or [HTTPError] is complete; an empty Reply is
// a complete answer without content.
type Reply []Step

// A Step is a part of an answer: [Text], [Thinking], [ToolCall], [Usage],
// [Wait], [Silence], [Fail], [Cut] or [HTTPError].
type Step interface{ step() }

// Text is one message of the model; each element is sent as one delta.
type Text []string

// Thinking is one piece of visible reasoning; each element is sent as a
// separate delta. Gemini CLI shows the words between "**" as its subject.
type Thinking []string

// ToolCall asks the agent to call a tool. The agent sends the result with its
// next request, see [Request.ToolResults].
type ToolCall struct {
	// ID identifies the call; empty lets the server number it.
	ID string
	// Name is the tool's name in the agent's own words.
	Name string
	// Arguments is a JSON object, or the text for a tool that takes free text.
	Arguments string
}

// Usage is the reported token usage of the answer: Input includes Cached,
// Output includes Reasoning. It may be anywhere in a Reply; without it all
// numbers are zero.
type Usage struct {
	Input, Cached, Output, Reasoning int64
}

// Wait holds the answer until the channel is closed or delivers, the client
// goes away or the server closes. As the first step it holds the headers too.
type Wait <-chan struct{}

// Silence holds the answer until the client goes away or the server closes. As
// the first step not even headers are sent; after an empty [Text] they are.
type Silence struct{}

// Fail ends a stream with the provider's error event, after the headers
// reported success.
type Fail struct {
	// Code is the provider's error code, for example "rate_limit_exceeded" of
	// OpenAI, "overloaded_error" of Anthropic or "RESOURCE_EXHAUSTED" of
	// Gemini.
	Code    string
	Message string
}

// Cut closes the connection in the middle of the answer.
type Cut struct{}

// HTTPError refuses the request with a status. Only Wait may come before it.
type HTTPError struct {
	// Status is the HTTP status; zero means 500.
	Status int
	// Header is added to the answer, for example Retry-After.
	Header http.Header
	// Message is put into the provider's error form. Body, when it is not
	// empty, is sent as it is instead.
	Message string
	Body    string
}

func (Text) step()      {}
func (Thinking) step()  {}
func (ToolCall) step()  {}
func (Usage) step()     {}
func (Wait) step()      {}
func (Silence) step()   {}
func (Fail) step()      {}
func (Cut) step()       {}
func (HTTPError) step() {}

// usage returns the numbers the reply reports.
func (r Reply) usage() Usage {
	var u Usage
	for _, step := range r {
		if v, ok := step.(Usage); ok {
			u = v
		}
	}
	return u
}

// object returns the arguments of a call as a JSON value: a text that is not JSON
// becomes a string, which is what a confused model sends.
func (c ToolCall) object() json.RawMessage {
	if json.Valid([]byte(c.Arguments)) {
		return json.RawMessage(c.Arguments)
	}
	text, err := json.Marshal(c.Arguments)
	if err != nil {
		panic(err) // strings always marshal
	}
	return text
}
