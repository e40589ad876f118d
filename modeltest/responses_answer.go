package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// serial numbers responses, items and calls of all servers of the process, so
// that a conversation that moves from one server to another has no ID twice.
var serial atomic.Int64

func newID(prefix string) string { return fmt.Sprintf("%s_modeltest_%d", prefix, serial.Add(1)) }

func (responses) answer(w http.ResponseWriter, r *Request, u Usage) answer {
	return &responsesAnswer{w: w, request: r, usage: u, response: responseObject{ID: newID("resp"), Object: "response", Model: r.Model()}}
}

// responsesAnswer sends one answer: as events while the reply is played, or as
// one document at the end for a request without stream.
type responsesAnswer struct {
	w        http.ResponseWriter
	request  *Request
	usage    Usage
	response responseObject
	started  bool
	// open is the message whose end is not sent yet, so that a cut or a
	// silence after a text falls into the middle of it.
	open *outputItem
}

// responseObject is the answer as a document; its events carry it too.
type responseObject struct {
	ID     string          `json:"id"`
	Object string          `json:"object"`
	Model  string          `json:"model"`
	Status string          `json:"status"`
	Output []outputItem    `json:"output"`
	Usage  *responsesUsage `json:"usage"`
	Error  *responsesError `json:"error"`
}

type responsesUsage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

type outputItem struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	Status    string       `json:"status,omitempty"`
	Role      string       `json:"role,omitempty"`
	Content   []outputPart `json:"content,omitzero"`
	Summary   []outputPart `json:"summary,omitzero"`
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Namespace string       `json:"namespace,omitempty"`
	Arguments string       `json:"arguments,omitempty"`
	Input     string       `json:"input,omitempty"`
}

type outputPart struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations,omitzero"`
}

// responsesEvent is one event of the stream; each kind uses some of the fields.
type responsesEvent struct {
	Type         string          `json:"type"`
	Response     *responseObject `json:"response,omitempty"`
	OutputIndex  *int            `json:"output_index,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	Item         *outputItem     `json:"item,omitempty"`
	ContentIndex *int            `json:"content_index,omitempty"`
	SummaryIndex *int            `json:"summary_index,omitempty"`
	Part         *outputPart     `json:"part,omitempty"`
	Delta        string          `json:"delta,omitempty"`
}

var first = new(int) // index 0: our items have one part

func (a *responsesAnswer) text(deltas []string) {
	item := outputItem{Type: "message", ID: newID("msg"), Status: "in_progress", Role: "assistant", Content: []outputPart{}}
	index := a.begin(item)
	part := outputPart{Type: "output_text", Annotations: []struct{}{}}
	a.send(responsesEvent{Type: "response.content_part.added", OutputIndex: index, ItemID: item.ID, ContentIndex: first, Part: &part})
	for _, delta := range deltas {
		a.send(responsesEvent{Type: "response.output_text.delta", OutputIndex: index, ItemID: item.ID, ContentIndex: first, Delta: delta})
	}
	part.Text = strings.Join(deltas, "")
	item.Content = []outputPart{part}
	a.open = &item
}

func (a *responsesAnswer) thinking(deltas []string) {
	item := outputItem{Type: "reasoning", ID: newID("rs"), Summary: []outputPart{}}
	index := a.begin(item)
	part := outputPart{Type: "summary_text"}
	a.send(responsesEvent{Type: "response.reasoning_summary_part.added", OutputIndex: index, ItemID: item.ID, SummaryIndex: first, Part: &part})
	for _, delta := range deltas {
		a.send(responsesEvent{Type: "response.reasoning_summary_text.delta", OutputIndex: index, ItemID: item.ID, SummaryIndex: first, Delta: delta})
	}
	part.Text = strings.Join(deltas, "")
	item.Summary = []outputPart{part}
	a.open = &item
}

func (a *responsesAnswer) tool(call ToolCall) {
	if call.ID == "" {
		call.ID = newID("call")
	}
	item := outputItem{ID: newID("item"), CallID: call.ID, Name: call.Name, Namespace: a.request.namespace(call.Name)}
	argument, kind := &item.Arguments, "response.function_call_arguments"
	item.Type = "function_call"
	if a.request.takesText(call.Name) {
		argument, kind = &item.Input, "response.custom_tool_call_input"
		item.Type = "custom_tool_call"
	}
	index := a.begin(item)
	a.send(responsesEvent{Type: kind + ".delta", OutputIndex: index, ItemID: item.ID, Delta: call.Arguments})
	*argument = call.Arguments
	a.open = &item
}

func (a *responsesAnswer) fail(f Fail) {
	a.end()
	a.response.Status = "failed"
	a.response.Error = &responsesError{Code: f.Code, Message: f.Message}
	a.conclude("response.failed")
}

func (a *responsesAnswer) finish() {
	a.end()
	u := a.usage
	a.response.Status = "completed"
	usage := responsesUsage{Input: u.Input, Output: u.Output, Total: u.Input + u.Output}
	usage.InputDetails.Cached = u.Cached
	usage.OutputDetails.Reasoning = u.Reasoning
	a.response.Usage = &usage
	a.conclude("response.completed")
}

// begin starts an output item and returns its index.
func (a *responsesAnswer) begin(item outputItem) *int {
	a.end()
	index := len(a.response.Output)
	a.send(responsesEvent{Type: "response.output_item.added", OutputIndex: &index, Item: &item})
	return &index
}

// end finishes the open item.
func (a *responsesAnswer) end() {
	if a.open == nil {
		return
	}
	item := *a.open
	a.open = nil
	if item.Type != "reasoning" {
		item.Status = "completed"
	}
	index := len(a.response.Output)
	a.send(responsesEvent{Type: "response.output_item.done", OutputIndex: &index, Item: &item})
	a.response.Output = append(a.response.Output, item)
}

func (a *responsesAnswer) conclude(event string) {
	if a.request.content.stream {
		a.send(responsesEvent{Type: event, Response: &a.response})
		return
	}
	sendJSON(a.w, a.response)
}

// send sends one event at once, after the one that opens the stream.
func (a *responsesAnswer) send(e responsesEvent) {
	if !a.request.content.stream {
		return
	}
	if !a.started {
		a.started = true
		beginStream(a.w)
		a.response.Status = "in_progress"
		a.send(responsesEvent{Type: "response.created", Response: &a.response})
	}
	sendEvent(a.w, e.Type, e)
}
