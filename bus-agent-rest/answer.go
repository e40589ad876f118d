package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmaxmax/go-sse"
)

const (
	// maxEvent bounds one event of a stream, in bytes.
	maxEvent = 4 << 20
	// maxAnswer bounds the text of an answer, and a response that is not a stream, in
	// bytes.
	maxAnswer = 16 << 20
	// maxResult bounds the text of the result line, in bytes.
	maxResult = 1 << 20
)

// An answer is the response to one request. It is written as it arrives.
type answer struct {
	out        *output
	limit      int // of text, in bytes
	cumulative bool
	finishing  func() // called when only the usage may follow; may be nil

	identified   bool // the answer line was written
	thought      bool
	text         strings.Builder
	repeats      repeats
	citations    []string
	usage        *Usage
	finishReason string // "" until the end of the answer
	done         bool   // the stream sent [DONE]
}

// begun reports whether part of the answer was written, so that a retry would
// repeat it.
func (a *answer) begun() bool { return a.thought || a.text.Len() > 0 }

// readStream reads an answer from server-sent events.
func (a *answer) readStream(r io.Reader) *failure {
	var malformed *failure
	// Complete the last event, whose empty line may be missing.
	whole := io.MultiReader(r, strings.NewReader("\n\n"))
	for event, err := range sse.Read(whole, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			if a.finishReason != "" { // the text is complete
				break
			}
			return a.broken(err)
		}
		if malformed != nil {
			return malformed
		}
		data := strings.TrimSpace(event.Data)
		if data == "" {
			continue
		}
		if a.done = data == "[DONE]"; a.done {
			break
		}
		if event.Type == "error" {
			return a.reported([]byte(data))
		}
		var c chunk
		if json.Unmarshal([]byte(data), &c) != nil {
			// As the last event it is a stream cut off, which may be retried.
			malformed = &failure{text: "invalid event from the server: " + a.out.clip(data)}
			continue
		}
		if f := a.addChunk(&c, []byte(data)); f != nil {
			return f
		}
		if a.out.err != nil {
			return &failure{text: "cannot write the answer"}
		}
	}
	a.add(a.repeats.flush(a.text.Len()))
	if !a.done && a.finishReason == "" {
		return a.cut()
	}
	return a.verdict()
}

// readDocument reads an answer from a single JSON document.
func (a *answer) readDocument(r io.Reader, mediaType string) *failure {
	text, err := io.ReadAll(io.LimitReader(r, int64(a.limit)+1))
	switch {
	case err != nil:
		return a.broken(err)
	case len(text) > a.limit:
		return a.tooLarge()
	}
	var c chunk
	if json.Unmarshal(text, &c) != nil {
		explained, _ := explain(text, mediaType, a.out)
		return &failure{text: fmt.Sprintf("the response is neither a stream nor JSON, but %q: %s", a.out.clip(mediaType), explained)}
	}
	if f := a.addChunk(&c, text); f != nil {
		return f
	}
	a.add(a.repeats.flush(a.text.Len()))
	if len(c.Choices) == 0 {
		explained, _ := explain(text, mediaType, a.out)
		return &failure{text: "the response contains no answer: " + explained}
	}
	return a.verdict()
}

func (a *answer) tooLarge() *failure {
	return &failure{text: fmt.Sprintf("the answer is larger than %d KiB", a.limit>>10)}
}

// broken returns the failure of a body whose reading failed with err.
func (a *answer) broken(err error) *failure {
	if errors.Is(err, bufio.ErrTooLong) {
		return &failure{text: fmt.Sprintf("an event of the server is larger than %d KiB", maxEvent>>10)}
	}
	f := a.cut()
	f.text += ": " + a.out.clip(err.Error())
	return f
}

func (a *answer) cut() *failure {
	return &failure{text: "the answer was cut off: the connection closed early", transient: true, after: useBackoff}
}

// addChunk adds c, decoded from data.
func (a *answer) addChunk(c *chunk, data []byte) *failure {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return a.reported(data)
	}
	if !a.identified && (c.ID != "" || c.Model != "") {
		a.identified = true
		a.out.write(&line{Type: "answer", ID: a.out.clip(string(c.ID)), Model: a.out.clip(string(c.Model))})
	}
	if list := c.sources(); len(list) > 0 {
		for i := range list {
			list[i] = a.out.clipAnswer(list[i])
		}
		a.citations = list
	}
	if u := c.usage(); u != nil {
		a.usage = u
	}
	if len(c.Choices) == 0 {
		return nil
	}
	first := &c.Choices[0]
	a.addThinking(first)
	a.add(a.newText(first))
	if a.text.Len()+a.repeats.size > a.limit {
		return a.tooLarge()
	}
	if first.FinishReason != "" && a.finishReason == "" {
		a.finishReason = first.FinishReason
		if a.finishing != nil {
			a.finishing()
		}
	}
	return nil
}

// reported returns the failure that the server reports in data.
func (a *answer) reported(data []byte) *failure {
	text, code := readError(data, a.out)
	if text == "" {
		text = a.out.clip(string(data))
	}
	f := &failure{text: "the server reported an error: " + text, class: classify(0, code, text), after: useBackoff}
	switch code {
	case "429", "500", "502", "503", "504", "rate_limit_exceeded", "rate_limit_error", "server_error", "overloaded_error":
		f.transient = !isExhausted(code, text)
	}
	return f
}

func (a *answer) addThinking(c *choice) {
	text := c.Delta.thinking()
	if text == "" && c.Delta.Content == "" && !a.thought {
		text = c.Message.thinking()
	}
	a.thought = a.thought || text != ""
	a.out.writeText("thinking", text)
}

// newText returns what a choice adds to the answer. Its message is the whole answer
// so far, and its delta the next part, or, from some servers, the whole as well.
func (a *answer) newText(c *choice) string {
	whole, delta := string(c.Message.Content), string(c.Delta.Content)
	if more, ok := strings.CutPrefix(whole, a.text.String()); ok && more != "" {
		a.repeats = repeats{mode: increments} // the message decides
		return more
	}
	switch {
	case delta == "" && whole == "":
		return string(c.Text)
	case delta == "":
		return a.repeats.cut(a.text.String(), whole)
	case a.cumulative:
		return a.repeats.next(a.text.String(), delta)
	}
	return delta
}

func (a *answer) add(text string) {
	a.text.WriteString(text)
	a.out.writeText("text", text)
}

// verdict returns the failure of a complete answer, or nil.
func (a *answer) verdict() *failure {
	switch a.finishReason {
	case "length", "max_tokens":
		return &failure{text: fmt.Sprintf("the answer was cut off at a token limit (finish_reason %q)", a.finishReason)}
	case "content_filter":
		return &failure{text: `the answer was cut off by the server's filter (finish_reason "content_filter")`}
	case "tool_calls", "function_call":
		return &failure{text: "the model called a tool, but there are none"}
	case "error":
		return &failure{text: `the server ended the answer with an error (finish_reason "error")`}
	}
	if strings.TrimSpace(a.text.String()) == "" {
		return &failure{text: "the answer is empty"}
	}
	return nil
}

// finish writes the sources, the usage and the result of a successful answer.
func (a *answer) finish() {
	if len(a.citations) > 0 {
		var list strings.Builder
		list.WriteString("\n\nSources:\n")
		for i, address := range a.citations {
			fmt.Fprintf(&list, "[%d] %s\n", i+1, address)
		}
		a.add(list.String())
	}
	if a.usage != nil {
		a.out.write(&line{Type: "usage", Usage: a.usage})
	}
	result := line{Type: "result", Citations: a.citations, FinishReason: a.out.clipAnswer(a.finishReason)}
	if a.text.Len() <= maxResult {
		result.Text = a.text.String()
	}
	a.out.write(&result)
}
