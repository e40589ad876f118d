package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

func (chat) answer(w http.ResponseWriter, r *Request, u Usage) answer {
	a := &chatAnswer{w: w, stream: r.content.stream, usage: chatUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}}
	a.usage.PromptDetails.Cached = u.Cached
	a.usage.CompletionDetails.Reasoning = u.Reasoning
	a.head = chatObject{ID: newID("chatcmpl"), Created: time.Now().Unix(), Model: r.Model()}
	a.whole = chatMessage{Role: "assistant"}
	return a
}

// chatAnswer sends one answer: as a chunk for each delta while the reply is
// played, or as one document at the end.
type chatAnswer struct {
	w       http.ResponseWriter
	stream  bool
	started bool
	head    chatObject
	whole   chatMessage
	usage   chatUsage
}

// chatObject is a chunk of a stream, or the answer as one document.
type chatObject struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

// chatChoice has a delta in a chunk and a message in a document.
type chatChoice struct {
	Index   int          `json:"index"`
	Delta   *chatMessage `json:"delta,omitempty"`
	Message *chatMessage `json:"message,omitempty"`
	Finish  *string      `json:"finish_reason"`
}

type chatMessage struct {
	Role      string         `json:"role,omitempty"`
	Content   *string        `json:"content,omitempty"`
	Reasoning string         `json:"reasoning_content,omitempty"`
	ToolCalls []chatToolCall `json:"tool_calls,omitempty"`
}

type chatToolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (a *chatAnswer) text(deltas []string) {
	a.start()
	for _, delta := range deltas {
		a.delta(chatMessage{Content: &delta})
	}
	text := strings.Join(deltas, "")
	if a.whole.Content != nil {
		text = *a.whole.Content + text
	}
	a.whole.Content = &text
}

func (a *chatAnswer) thinking(deltas []string) {
	a.start()
	for _, delta := range deltas {
		a.delta(chatMessage{Reasoning: delta})
		a.whole.Reasoning += delta
	}
}

func (a *chatAnswer) tool(call ToolCall) {
	if call.ID == "" {
		call.ID = newID("call")
	}
	c := chatToolCall{Index: len(a.whole.ToolCalls), ID: call.ID, Type: "function"}
	c.Function.Name, c.Function.Arguments = call.Name, call.Arguments
	a.delta(chatMessage{ToolCalls: []chatToolCall{c}})
	a.whole.ToolCalls = append(a.whole.ToolCalls, c)
}

func (a *chatAnswer) fail(f Fail) {
	document := struct {
		Error responsesError `json:"error"`
	}{responsesError{Message: f.Message, Type: "error", Code: f.Code}}
	if !a.stream {
		sendJSON(a.w, document)
		return
	}
	a.start()
	sendEvent(a.w, "", document)
}

func (a *chatAnswer) finish() {
	reason := "stop"
	if len(a.whole.ToolCalls) > 0 {
		reason = "tool_calls"
	}
	if !a.stream {
		document := a.head
		document.Object = "chat.completion"
		document.Choices = []chatChoice{{Message: &a.whole, Finish: &reason}}
		document.Usage = &a.usage
		sendJSON(a.w, document)
		return
	}
	a.chunk([]chatChoice{{Delta: &chatMessage{}, Finish: &reason}}, nil)
	a.chunk([]chatChoice{}, &a.usage)
	fmt.Fprint(a.w, "data: [DONE]\n\n")
}

func (a *chatAnswer) delta(m chatMessage) { a.chunk([]chatChoice{{Delta: &m}}, nil) }

func (a *chatAnswer) chunk(choices []chatChoice, usage *chatUsage) {
	if !a.stream {
		return
	}
	a.start()
	chunk := a.head
	chunk.Object, chunk.Choices, chunk.Usage = "chat.completion.chunk", choices, usage
	sendEvent(a.w, "", chunk)
}

// start sends the headers and the chunk that names the role.
func (a *chatAnswer) start() {
	if a.started || !a.stream {
		return
	}
	a.started = true
	beginStream(a.w)
	a.delta(chatMessage{Role: "assistant", Content: new("")})
}
