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
	refused      bool // part of the text is a refusal
	text         strings.Builder
	repeats      repeats
	inText       halves
	inThinking   halves
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
		var c chunk
		err := json.Unmarshal([]byte(data), &c)
		if event.Type == "error" {
			a.addUsage(&c)
			return a.reported([]byte(data))
		}
		if err != nil {
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
	a.flush()
	if !a.complete() {
		return a.cut()
	}
	return a.verdict()
}

// complete reports whether the stream sent an end marker.
func (a *answer) complete() bool { return a.done || a.finishReason != "" }

// flush adds what was held back.
func (a *answer) flush() {
	a.out.writeText("thinking", a.inThinking.flush())
	a.add(a.repeats.flush(a.text.Len()) + a.inText.flush())
}

// readDocument reads an answer from a single JSON document. It does not wait for the end
// of r, since a server may keep the connection open.
func (a *answer) readDocument(r io.Reader, mediaType string) *failure {
	body := &bounded{r: r, left: a.limit + 1}
	decoder := json.NewDecoder(body)
	var text json.RawMessage
	err := decoder.Decode(&text)
	if err != nil {
		text, _ = io.ReadAll(io.MultiReader(decoder.Buffered(), body))
	}
	switch {
	case len(text) > a.limit:
		return a.tooLarge()
	case body.err != nil:
		return a.broken(body.err)
	}
	var c chunk
	if err != nil || json.Unmarshal(text, &c) != nil {
		explained, _ := explain(text, mediaType, a.out)
		return &failure{text: fmt.Sprintf("the response is neither a stream nor JSON, but %q: %s", a.out.clip(mediaType), explained)}
	}
	if f := a.addChunk(&c, text); f != nil {
		return f
	}
	a.flush()
	if c.first() == nil {
		explained, _ := explain(text, mediaType, a.out)
		return &failure{text: "the response contains no answer: " + explained}
	}
	return a.verdict()
}

// bounded is a reader with a limit that keeps the error of its reader.
type bounded struct {
	r    io.Reader
	left int
	err  error // other than io.EOF
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
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
	return &failure{text: "the answer was cut off: the connection closed early", transient: true, wait: useBackoff}
}

// addChunk adds c, decoded from data.
func (a *answer) addChunk(c *chunk, data []byte) *failure {
	a.addUsage(c)
	if problem := c.problem(data); problem != nil {
		return a.reported(problem)
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
	first := c.first()
	if first == nil {
		return nil
	}
	a.addThinking(first)
	a.add(a.newText(first))
	a.addRefusal(first)
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

func (a *answer) addUsage(c *chunk) {
	if u := c.usage(); u != nil {
		a.usage = u
	}
}

// reported returns the failure that the server reports in data.
func (a *answer) reported(data []byte) *failure {
	text, code := readError(data, a.out)
	if text == "" {
		text = a.out.clip(string(data))
	}
	f := &failure{text: "the server reported an error: " + text, class: classify(0, code, text), wait: useBackoff}
	switch code {
	case "429", "500", "502", "503", "504", "rate_limit_exceeded", "rate_limit_error", "server_error", "overloaded_error":
		f.transient = !isExhausted(code, text, useBackoff)
	}
	return f
}

func (a *answer) addThinking(c *choice) {
	text := c.Delta.thinking()
	if text == "" && c.Delta.Content == "" && !a.thought {
		text = c.Message.thinking()
	}
	text = a.inThinking.join(text)
	a.thought = a.thought || text != ""
	a.out.writeText("thinking", text)
}

// addRefusal adds the model's refusal to the text: it is all that a user gets.
func (a *answer) addRefusal(c *choice) {
	text := string(c.Delta.Refusal)
	if text == "" && !a.refused {
		text = string(c.Message.Refusal)
	}
	a.refused = a.refused || text != ""
	if text = a.inText.join(text); text != "" {
		a.settle()
		a.add(text)
	}
}

// newText returns what a choice adds to the answer. Its message is the whole answer
// so far, and its delta the next part, or, from some servers, the whole as well.
func (a *answer) newText(c *choice) string {
	delta := string(c.Delta.Content)
	var atEnd halves // of the whole: its other half comes with the next whole
	whole := atEnd.join(string(c.Message.Content))
	if more, ok := strings.CutPrefix(whole, a.text.String()); ok && more != "" {
		a.repeats = repeats{mode: increments} // the message decides
		a.inText = atEnd
		return more
	}
	switch {
	case delta == "" && whole == "":
		text := a.inText.join(string(c.Text) + atEnd.held)
		if text != "" {
			a.settle()
		}
		return text
	case delta == "":
		a.inText = atEnd
		if a.repeats.cut(a.text.String(), whole) == "" {
			return ""
		}
		a.settle()
		return a.repeats.cut(a.text.String(), whole)
	case a.cumulative:
		if a.repeats.mode != increments && halfOf(delta) == 0 {
			a.inText = halves{} // delta is a whole
		}
		return a.repeats.next(a.text.String(), a.inText.join(delta))
	}
	return a.inText.join(delta)
}

// settle adds the chunks that are held back. They begin with the text, so it must not
// grow otherwise before.
func (a *answer) settle() { a.add(a.repeats.flush(a.text.Len())) }

func (a *answer) add(text string) {
	a.text.WriteString(text)
	a.out.writeText("text", text)
}

// verdict returns the failure of a complete answer, or nil.
func (a *answer) verdict() *failure {
	if a.refused {
		return &failure{text: "the model refused to answer"}
	}
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

// addSources adds the sources to the text of a successful answer.
func (a *answer) addSources() {
	if len(a.citations) == 0 {
		return
	}
	var list strings.Builder
	list.WriteString("\n\nSources:\n")
	for i, address := range a.citations {
		fmt.Fprintf(&list, "[%d] %s\n", i+1, address)
	}
	a.add(list.String())
}

// result returns the last line of a successful answer.
func (a *answer) result() *line {
	l := line{Type: "result", Citations: a.citations, FinishReason: a.out.clipAnswer(a.finishReason)}
	if a.text.Len() <= maxResult {
		l.Text = a.text.String()
	}
	return &l
}
