package modeltest

import (
	"encoding/json"
	"net/http"
)

func (generate) answer(w http.ResponseWriter, r *Request, u Usage) answer {
	model, method := generateTarget(r)
	return &generateAnswer{w: w, stream: method == generateStream, whole: generateResponse{
		Candidates: []generateCandidate{{Content: generateContent{Role: "model", Parts: []generatePart{}}}},
		Usage: generateUsage{
			Prompt: u.Input, Cached: u.Cached, Candidates: u.Output - u.Reasoning,
			Thoughts: u.Reasoning, Total: u.Input + u.Output,
		},
		Model: model,
		ID:    newID("response"),
	}}
}

// generateAnswer sends one answer: as a chunk for each delta while the reply is
// played, or as one document at the end.
type generateAnswer struct {
	w       http.ResponseWriter
	stream  bool
	started bool
	// whole is the answer as one document; the last chunk of a stream is it
	// without its parts.
	whole generateResponse
}

type generateResponse struct {
	Candidates []generateCandidate `json:"candidates"`
	Usage      generateUsage       `json:"usageMetadata,omitzero"`
	Model      string              `json:"modelVersion"`
	ID         string              `json:"responseId"`
}

type generateCandidate struct {
	Content generateContent `json:"content"`
	Finish  string          `json:"finishReason,omitempty"`
	Index   int             `json:"index"`
}

type generateUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Total      int64 `json:"totalTokenCount"`
}

func (a *generateAnswer) text(deltas []string) {
	a.start()
	for _, delta := range deltas {
		a.part(generatePart{Text: &delta})
	}
}

func (a *generateAnswer) thinking(deltas []string) {
	a.start()
	for _, delta := range deltas {
		a.part(generatePart{Text: &delta, Thought: true})
	}
}

func (a *generateAnswer) tool(call ToolCall) {
	if call.ID == "" {
		call.ID = newID("call")
	}
	a.part(generatePart{Call: &functionCall{ID: call.ID, Name: call.Name, Args: call.object()}})
}

// fail sends the error as a separate chunk that is not an event, as the service
// does.
func (a *generateAnswer) fail(f Fail) {
	code := http.StatusInternalServerError
	for status, word := range generateStatuses {
		if word == f.Code {
			code = status
		}
	}
	a.start()
	sendJSON(a.w, generateFailure{generateError{Code: code, Message: f.Message, Status: f.Code}})
}

func (a *generateAnswer) finish() {
	a.whole.Candidates[0].Finish = "STOP"
	if !a.stream {
		sendJSON(a.w, a.whole)
		return
	}
	a.start()
	a.whole.Candidates[0].Content.Parts = []generatePart{}
	sendEvent(a.w, "", a.whole)
}

func (a *generateAnswer) part(p generatePart) {
	content := &a.whole.Candidates[0].Content
	content.Parts = append(content.Parts, p)
	if !a.stream {
		return
	}
	a.start()
	chunk := a.whole
	chunk.Usage = generateUsage{}
	chunk.Candidates = []generateCandidate{{Content: generateContent{Role: "model", Parts: []generatePart{p}}}}
	sendEvent(a.w, "", chunk)
}

// start sends the headers of a stream.
func (a *generateAnswer) start() {
	if a.started || !a.stream {
		return
	}
	a.started = true
	beginStream(a.w)
	_ = http.NewResponseController(a.w).Flush()
}

func marshal[T int | bool | string | []string | map[string]json.RawMessage](value T) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // these types always marshal
	}
	return data
}
