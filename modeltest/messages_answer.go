package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
)

func (messages) answer(w http.ResponseWriter, r *Request, u Usage) answer {
	a := &messagesAnswer{w: w, request: r, message: messageObject{
		ID: newID("msg"), Type: "message", Role: "assistant", Model: r.Model(), Content: []outputBlock{},
	}}
	a.message.Usage = messagesUsage{Input: u.Input - u.Cached, CacheRead: u.Cached, Output: u.Output}
	a.message.Usage.OutputDetails.Thinking = u.Reasoning
	return a
}

// messagesAnswer sends one answer: as events while the reply is played, or as
// one document at the end for a request without stream.
type messagesAnswer struct {
	w       http.ResponseWriter
	request *Request
	message messageObject
	started bool
	// open is the block whose end is not sent yet, so that a cut or a silence
	// after a text falls into the middle of it.
	open *outputBlock
}

// messageObject is the answer as a document; its first event carries it too.
type messageObject struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []outputBlock `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        messagesUsage `json:"usage"`
}

type messagesUsage struct {
	Input         int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// outputBlock is a content block; each type uses some of the fields.
type outputBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// messagesEvent is one event of the stream; each kind uses some of the fields.
type messagesEvent struct {
	Type    string         `json:"type"`
	Message *messageObject `json:"message,omitempty"`
	Index   *int           `json:"index,omitempty"`
	Block   *outputBlock   `json:"content_block,omitempty"`
	Delta   *messagesDelta `json:"delta,omitempty"`
	Usage   *messagesUsage `json:"usage,omitempty"`
}

type messagesDelta struct {
	Type        string  `json:"type,omitempty"`
	Text        *string `json:"text,omitempty"`
	Thinking    *string `json:"thinking,omitempty"`
	Signature   *string `json:"signature,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
	StopReason  *string `json:"stop_reason,omitempty"`
}

func (a *messagesAnswer) text(deltas []string) {
	a.begin(outputBlock{Type: "text", Text: new("")})
	for _, delta := range deltas {
		a.sendDelta(messagesDelta{Type: "text_delta", Text: &delta})
	}
	a.open.Text = new(strings.Join(deltas, ""))
}

func (a *messagesAnswer) thinking(deltas []string) {
	a.begin(outputBlock{Type: "thinking", Thinking: new(""), Signature: new("")})
	for _, delta := range deltas {
		a.sendDelta(messagesDelta{Type: "thinking_delta", Thinking: &delta})
	}
	// Agents send it back with the text; it is not checked here.
	signature := newID("signature")
	a.sendDelta(messagesDelta{Type: "signature_delta", Signature: &signature})
	a.open.Thinking, a.open.Signature = new(strings.Join(deltas, "")), &signature
}

func (a *messagesAnswer) tool(call ToolCall) {
	if call.ID == "" {
		call.ID = newID("toolu")
	}
	a.begin(outputBlock{Type: "tool_use", ID: call.ID, Name: call.Name, Input: json.RawMessage("{}")})
	a.sendDelta(messagesDelta{Type: "input_json_delta", PartialJSON: &call.Arguments})
	a.open.Input = call.object()
}

func (a *messagesAnswer) fail(f Fail) {
	a.end()
	if !a.request.content.stream {
		sendJSON(a.w, newMessagesError(f.Code, f.Message))
		return
	}
	a.start()
	sendEvent(a.w, "error", newMessagesError(f.Code, f.Message))
}

func (a *messagesAnswer) finish() {
	a.end()
	reason := "end_turn"
	for _, block := range a.message.Content {
		if block.Type == "tool_use" {
			reason = "tool_use"
		}
	}
	if !a.request.content.stream {
		a.message.StopReason = &reason
		sendJSON(a.w, a.message)
		return
	}
	a.send(messagesEvent{Type: "message_delta", Delta: &messagesDelta{StopReason: &reason}, Usage: &a.message.Usage})
	a.send(messagesEvent{Type: "message_stop"})
}

// begin starts a content block.
func (a *messagesAnswer) begin(block outputBlock) {
	a.end()
	index := len(a.message.Content)
	a.send(messagesEvent{Type: "content_block_start", Index: &index, Block: &block})
	a.open = &block
}

func (a *messagesAnswer) sendDelta(d messagesDelta) {
	index := len(a.message.Content)
	a.send(messagesEvent{Type: "content_block_delta", Index: &index, Delta: &d})
}

// end finishes the open block.
func (a *messagesAnswer) end() {
	if a.open == nil {
		return
	}
	index := len(a.message.Content)
	a.send(messagesEvent{Type: "content_block_stop", Index: &index})
	a.message.Content = append(a.message.Content, *a.open)
	a.open = nil
}

func (a *messagesAnswer) send(e messagesEvent) {
	if !a.request.content.stream {
		return
	}
	a.start()
	sendEvent(a.w, e.Type, e)
}

// start sends the event that opens the stream; it has the usage of the input
// and the first token of the output.
func (a *messagesAnswer) start() {
	if a.started {
		return
	}
	a.started = true
	beginStream(a.w)
	opening := a.message
	opening.Content = []outputBlock{}
	opening.Usage.Output = min(1, opening.Usage.Output)
	opening.Usage.OutputDetails.Thinking = 0
	sendEvent(a.w, "message_start", messagesEvent{Type: "message_start", Message: &opening})
}
