package sessiontest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Kind says what a [Step] is.
type Kind int

// The kinds of steps.
const (
	// Expect waits for a line of the client that says the same as Line: see
	// [Key]. Lines that come meanwhile are kept for later steps.
	Expect Kind = iota + 1
	// Say says Line.
	Say
	// Write writes Line as it is, without a line break.
	Write
	// Pause waits for the time For.
	Pause
	// Deafen reads nothing any more, whatever comes.
	Deafen
	// Die ends the peer: its output ends and nobody reads what is sent to it.
	Die
)

// A Step is one thing that a peer does.
type Step struct {
	Kind Kind
	Line string
	For  time.Duration
}

// entry is a line of a transcript.
type entry struct {
	Direction string          `json:"dir"`
	Message   json.RawMessage `json:"msg"`
	Line      string          `json:"line"`
}

// Transcript reads the record of a conversation: a line of JSON for each line of
// it, with "dir" and either "msg", a JSON value, or "line", a text. The direction
// ">" is what the client sent and "<" what the agent said; others are left out.
func Transcript(r io.Reader) ([]Step, error) {
	var steps []Step
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e entry
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("line %d of the transcript: %w", n, err)
			}
			text := e.Line
			if e.Message != nil {
				text = string(e.Message)
			}
			switch e.Direction {
			case ">":
				steps = append(steps, Step{Kind: Expect, Line: text})
			case "<":
				steps = append(steps, Step{Kind: Say, Line: text})
			}
		}
		if errors.Is(err, io.EOF) {
			return steps, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// envelope is what tells lines apart.
type envelope struct {
	// JSON-RPC.
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	// Lines with a type.
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		RequestID string `json:"request_id"`
	} `json:"response"`
}

func open(line string) envelope {
	var e envelope
	if json.Unmarshal([]byte(line), &e) != nil {
		return envelope{} // its key is the line
	}
	return e
}

// Key returns what a line of a client is known by: the method of a request, the
// type and the subtype of a control request, "answer" and the ID of an answer,
// the type of any other line, and of one that is no JSON the line itself.
func Key(line string) string {
	e := open(line)
	switch {
	case e.Method != "":
		return e.Method
	case e.ID != nil:
		return "answer " + string(e.ID)
	case e.Type == "control_response":
		return "answer " + e.Response.RequestID
	case e.Type != "":
		return strings.TrimSpace(e.Type + " " + e.Request.Subtype)
	}
	return line
}
