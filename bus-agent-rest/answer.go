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
	// maxAnswer bounds the text of an answer, and the document it comes in, in bytes.
	maxAnswer = 16 << 20
	// repeatedSize bounds the text that the result repeats.
	repeatedSize = 1 << 20
)

// An answer is what the server says to one request. It is written as it comes.
type answer struct {
	out        *output
	limit      int // of its text
	cumulative bool
	over       func() // called once the server has said that it is over; may be nil

	named     bool // the server has said which model it is
	thought   bool
	text      strings.Builder
	repeats   repeats
	citations []string
	tokens    *Tokens
	finish    string // why it is over; empty as long as it is not
	done      bool   // the stream has said that it is
}

// begun reports whether anything of it has been written that would stand there
// twice after another request.
func (a *answer) begun() bool { return a.thought || a.text.Len() > 0 }

// readStream reads an answer that comes as events.
func (a *answer) readStream(r io.Reader) *failure {
	var garbled *failure
	// A last event without an empty line after it counts.
	whole := io.MultiReader(r, strings.NewReader("\n\n"))
	for event, err := range sse.Read(whole, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			if a.finish != "" { // which is all that mattered
				break
			}
			return a.broken(err)
		}
		if garbled != nil {
			return garbled
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
			// If it is the last, the stream was cut.
			garbled = &failure{text: "the server sends an event that is not understood: " + a.out.clip(data)}
			continue
		}
		if f := a.take(&c, []byte(data)); f != nil {
			return f
		}
		if a.out.err != nil {
			return &failure{text: "the answer cannot be written"}
		}
	}
	a.add(a.repeats.rest(a.text.Len()))
	if !a.done && a.finish == "" {
		return a.cut()
	}
	return a.judge()
}

// readDocument reads an answer that comes as one document.
func (a *answer) readDocument(r io.Reader, kind string) *failure {
	text, err := io.ReadAll(io.LimitReader(r, int64(a.limit)+1))
	switch {
	case err != nil:
		return a.broken(err)
	case len(text) > a.limit:
		return a.tooLarge()
	}
	var c chunk
	if json.Unmarshal(text, &c) != nil {
		explained, _ := explain(text, kind, a.out)
		return &failure{text: fmt.Sprintf("the server answers with neither a stream nor JSON, but %q: %s", a.out.clip(kind), explained)}
	}
	if f := a.take(&c, text); f != nil {
		return f
	}
	a.add(a.repeats.rest(a.text.Len()))
	if len(c.Choices) == 0 {
		explained, _ := explain(text, kind, a.out)
		return &failure{text: "the server answers with JSON that holds no answer: " + explained}
	}
	return a.judge()
}

func (a *answer) tooLarge() *failure {
	return &failure{text: fmt.Sprintf("the answer has more than %d KiB", a.limit>>10)}
}

// broken returns the failure of a body that cannot be read to its end.
func (a *answer) broken(err error) *failure {
	if errors.Is(err, bufio.ErrTooLong) {
		return &failure{text: fmt.Sprintf("the server sends an event of more than %d KiB", maxEvent>>10)}
	}
	f := a.cut()
	f.text += ": " + a.out.clip(err.Error())
	return f
}

func (a *answer) cut() *failure {
	return &failure{text: "the answer was cut off: the connection ended before the server said that it is over", again: true, after: notNamed}
}

// take takes in one chunk.
func (a *answer) take(c *chunk, data []byte) *failure {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return a.reported(data)
	}
	if !a.named && (c.ID != "" || c.Model != "") {
		a.named = true
		a.out.write(&line{Type: "answer", ID: a.out.clip(string(c.ID)), Model: a.out.clip(string(c.Model))})
	}
	if list := c.sources(); len(list) > 0 {
		for i := range list {
			list[i] = a.out.clipSaid(list[i])
		}
		a.citations = list
	}
	if t := c.cost(); t != nil {
		a.tokens = t
	}
	if len(c.Choices) == 0 {
		return nil
	}
	first := &c.Choices[0]
	a.think(first)
	a.add(a.news(first))
	if a.text.Len()+a.repeats.size > a.limit {
		return a.tooLarge()
	}
	if first.Finish != "" && a.finish == "" {
		a.finish = first.Finish
		if a.over != nil {
			a.over()
		}
	}
	return nil
}

// reported returns the failure that the server reports instead of an answer.
func (a *answer) reported(data []byte) *failure {
	text, code := readError(data, a.out)
	if text == "" {
		text = a.out.clip(string(data))
	}
	f := &failure{text: "the server reports an error: " + text, class: classify(0, code, text), after: notNamed}
	switch code {
	case "429", "500", "502", "503", "504", "rate_limit_exceeded", "rate_limit_error", "server_error", "overloaded_error":
		f.again = !isSpent(code, text)
	}
	return f
}

func (a *answer) think(c *choice) {
	text := c.Delta.thinking()
	if text == "" && c.Delta.Content == "" && !a.thought {
		text = c.Message.thinking()
	}
	a.thought = a.thought || text != ""
	a.out.say("thinking", text)
}

// news returns what a choice adds to the answer. Its message is the whole so far,
// its delta what comes next, or with some servers the whole as well.
func (a *answer) news(c *choice) string {
	whole, delta := string(c.Message.Content), string(c.Delta.Content)
	if more, ok := strings.CutPrefix(whole, a.text.String()); ok && more != "" {
		a.repeats.settled()
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
	a.out.say("text", text)
}

// judge decides what an answer that is over came to.
func (a *answer) judge() *failure {
	switch a.finish {
	case "length", "max_tokens":
		return &failure{text: fmt.Sprintf("the answer was cut at a limit of tokens (finish_reason %q)", a.finish)}
	case "content_filter":
		return &failure{text: "the answer was cut by the server's filter (finish_reason \"content_filter\")"}
	case "tool_calls", "function_call":
		return &failure{text: "the model asked for a tool, of which there is none"}
	case "error":
		return &failure{text: "the server ended the answer with an error (finish_reason \"error\")"}
	}
	if strings.TrimSpace(a.text.String()) == "" {
		return &failure{text: "the answer is empty"}
	}
	return nil
}

// end writes what comes after a good answer.
func (a *answer) end() {
	if len(a.citations) > 0 {
		var list strings.Builder
		list.WriteString("\n\nSources:\n")
		for i, address := range a.citations {
			fmt.Fprintf(&list, "[%d] %s\n", i+1, address)
		}
		a.add(list.String())
	}
	if a.tokens != nil {
		a.out.write(&line{Type: "usage", Tokens: a.tokens})
	}
	result := line{Type: "result", Citations: a.citations, FinishReason: a.out.clipSaid(a.finish)}
	if a.text.Len() <= repeatedSize {
		result.Text = a.text.String()
	}
	a.out.write(&result)
}
