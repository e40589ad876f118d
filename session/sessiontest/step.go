package sessiontest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/busdk/bus-agent/jsonline"
)

// A Kind says what a [Step] is.
type Kind int

// The kinds of steps.
const (
	// Expect waits for a line of the client with the same [Key] as Line.
	// Other lines that arrive meanwhile are kept for later steps.
	Expect Kind = iota + 1
	// Say sends Line.
	Say
	// Write writes Line as it is, without a line break.
	Write
	// Pause waits for the time For.
	Pause
	// Deafen stops reading after the next line, which a pipe would hold.
	Deafen
	// Hush ends the peer's output. The peer stays alive but does nothing
	// more.
	Hush
	// Die ends the peer: its output ends, and its input is no longer read.
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

// Transcript reads the record of a conversation: one JSON object for each line,
// with "dir" and either "msg", a JSON value, or "line", a text. The direction ">"
// is what the client sent and "<" what the agent said; others are left out.
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

// envelope is what distinguishes lines.
type envelope struct {
	// JSON-RPC.
	id     string // as written, empty for none
	method string
	// Lines with a type.
	kind, requestID, subtype string
	answers                  string // the ID of the request
	uuid                     string // of a message
}

// open reads the envelope of a line; that of no JSON is empty.
func open(line string) envelope {
	var e envelope
	r := jsonline.New([]byte(line))
	for m := r.Object(); m.Next(); {
		switch name := string(m.Name()); {
		case name == "id" && r.Kind() != jsonline.Null:
			e.id = string(r.Raw())
		case r.Kind() == jsonline.Object && (name == "request" || name == "response"):
			for in := r.Object(); in.Next(); {
				switch {
				case r.Kind() != jsonline.String:
				case name == "request" && string(in.Name()) == "subtype":
					e.subtype = r.String()
				case name == "response" && string(in.Name()) == "request_id":
					e.answers = r.String()
				}
			}
		case r.Kind() != jsonline.String:
		case name == "method":
			e.method = r.String()
		case name == "type":
			e.kind = r.String()
		case name == "request_id":
			e.requestID = r.String()
		case name == "uuid":
			e.uuid = r.String()
		}
	}
	if !r.End() {
		return envelope{}
	}
	return e
}

// Key returns the key of a client's line: the method of a request, the type and
// the subtype of a control request, "answer" and the ID of an answer, the type
// of any other line, and the line itself if it is not JSON.
func Key(line string) string {
	e := open(line)
	switch {
	case e.method != "":
		return e.method
	case e.id != "":
		return "answer " + e.id
	case e.kind == "control_response":
		return "answer " + e.answers
	case e.kind != "":
		return strings.TrimSpace(e.kind + " " + e.subtype)
	}
	return line
}
