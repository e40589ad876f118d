package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// Control is a line of a stream that is not an event. The server sends such lines only to
// clients that asked for them with control=true, so that others never see one.
type Control struct {
	// Kind is one of the values below.
	Kind string `json:"control"`
	// AfterID is set on opened lines: the events that the stream delivers come after it.
	AfterID string `json:"after_id,omitempty"`
	// HeartbeatSeconds is set on opened lines: the longest time without a line.
	HeartbeatSeconds int `json:"heartbeat_seconds,omitempty"`
	// Error is set on ended lines of streams that were not completed.
	Error *ErrorDetail `json:"error,omitempty"`
	// Status is the HTTP status that belongs to Error.
	Status int `json:"status,omitempty"`
}

// Kinds of control lines.
const (
	ControlOpened   = "opened"    // first line
	ControlCaughtUp = "caught_up" // all events that were in the log have been sent
	ControlEnded    = "ended"     // last line
)

// errCut is the end of a stream in the middle of a line.
var errCut = errors.New("the stream was cut off in the middle of a line")

// lineReader reads the lines of a stream.
type lineReader struct {
	from *bufio.Reader
	line []byte // the current line; reused
}

func newLineReader(from io.Reader) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, 64<<10)}
}

// next returns an event or a control line. Blank lines, which are heartbeats, are
// skipped. The error is io.EOF at the end.
func (r *lineReader) next() (*Event, *Control, error) {
	for {
		if err := r.read(); err != nil {
			return nil, nil, err
		}
		if line := bytes.TrimSpace(r.line); len(line) > 0 {
			return parseLine(line)
		}
	}
}

// read reads a line, at most MaxEventBytes.
func (r *lineReader) read() error {
	const keep = 256 << 10
	if cap(r.line) > keep {
		r.line = nil // one large event must not hold its memory for the life of the stream
	}
	r.line = r.line[:0]
	for {
		piece, err := r.from.ReadSlice('\n')
		if len(r.line)+len(piece) > MaxEventBytes+1 {
			start := append(r.line, piece[:min(len(piece), 1024)]...)
			return invalid("event %s: its line is longer than %d bytes; the stream cannot be read past it", idIn(start), MaxEventBytes)
		}
		r.line = append(r.line, piece...)
		switch {
		case err == nil:
			return nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(bytes.TrimSpace(r.line)) > 0:
			return errCut
		default:
			return err
		}
	}
}

var idField = regexp.MustCompile(`"id"\s*:\s*"([A-Za-z0-9_-]{1,64})"`)

// idIn returns the ID in the first part of a line, for error messages.
func idIn(line []byte) string {
	if m := idField.FindSubmatch(line[:min(len(line), 1024)]); m != nil {
		return string(m[1])
	}
	return "without a readable ID"
}

func parseLine(line []byte) (*Event, *Control, error) {
	var both struct {
		Event
		Control      string          `json:"control"`
		AfterID      string          `json:"after_id"`
		Heartbeat    int             `json:"heartbeat_seconds"`
		Status       int             `json:"status"`
		ControlError json.RawMessage `json:"error"` // of an event or of a control line
	}
	if err := json.Unmarshal(line, &both); err != nil {
		return nil, nil, &Error{Kind: ErrInvalid, Message: fmt.Sprintf("event %s: not an event in JSON", idIn(line)), cause: err}
	}
	hasError := len(both.ControlError) > 0 && string(both.ControlError) != "null"
	if both.Control != "" && both.Name == "" {
		c := &Control{Kind: both.Control, AfterID: both.AfterID, HeartbeatSeconds: both.Heartbeat, Status: both.Status}
		if hasError {
			c.Error = new(ErrorDetail)
			if err := json.Unmarshal(both.ControlError, c.Error); err != nil {
				return nil, nil, &Error{Kind: ErrInvalid, Message: "control line: its error", cause: err}
			}
		}
		return nil, c, nil
	}
	e := both.Event
	if hasError {
		e.Error = new(Failure)
		if err := json.Unmarshal(both.ControlError, e.Error); err != nil {
			return nil, nil, &Error{Kind: ErrInvalid, Message: fmt.Sprintf("event %s: its error", idIn(line)), cause: err}
		}
	}
	if e.Name == "" {
		return nil, nil, invalid("event %s: it has no name; check that the URL is that of a Bus Events API", idIn(line))
	}
	if len(e.Payload) == 0 {
		e.Payload = json.RawMessage("null")
	}
	return &e, nil, nil
}
