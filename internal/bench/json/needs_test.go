package json

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
)

// needs is what an event needs of a line. Of several blocks the last one is
// kept: how much is read is what counts here.
type needs struct {
	Type, Kind, Session, Parent, Message, Tool, Name, Text string

	Output, Input located
}

// located is a value that was found and is not decoded until it is needed.
type located struct {
	bytes []byte
	form  form
}

type form uint8

const (
	asJSON form = iota
	body        // of a string, without its quotes
	text        // of a string, unescaped
)

// decoded returns the value, compact.
func (l located) decoded() (string, error) {
	switch {
	case len(l.bytes) == 0 || l.form == asJSON && string(l.bytes) == "null":
		return "", nil
	case l.form == text:
		return string(l.bytes), nil
	case l.form == body:
		l.bytes = append(append([]byte{'"'}, l.bytes...), '"')
	}
	if l.bytes[0] == '"' {
		var s string
		err := stdjson.Unmarshal(l.bytes, &s)
		return s, err
	}
	var v any
	d := stdjson.NewDecoder(bytes.NewReader(l.bytes))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("%w: %.100s", err, l.bytes)
	}
	compact, err := stdjson.Marshal(v) // names in order: not every candidate keeps theirs
	return string(compact), err
}

// words turns words that repeat into strings without a copy each time. The
// candidates that give bytes share it.
type words map[string]string

func (w words) of(b []byte) string {
	if s, ok := w[string(b)]; ok {
		return s
	}
	if len(w) > 256 {
		clear(w)
	}
	s := string(b)
	if len(s) <= 64 {
		w[s] = s
	}
	return s
}

// set returns the field of n that a member of an object holds as a word.
func (n *needs) word(in object, name []byte) *string {
	switch in {
	case line:
		switch string(name) {
		case "type":
			return &n.Type
		case "subtype", "role":
			return &n.Kind
		case "session_id", "thread_id":
			return &n.Session
		case "parent_tool_use_id":
			return &n.Parent
		case "tool_id":
			return &n.Tool
		case "tool_name":
			return &n.Name
		}
	case message:
		if string(name) == "id" {
			return &n.Message
		}
	case block:
		switch string(name) {
		case "type":
			return &n.Kind
		case "id", "tool_use_id":
			return &n.Tool
		case "name":
			return &n.Name
		}
	case event:
		if string(name) == "type" {
			return &n.Name
		}
	case item:
		switch string(name) {
		case "type":
			return &n.Kind
		case "id":
			return &n.Message
		case "command", "tool":
			return &n.Name
		}
	}
	return nil
}

// text reports whether a member holds a text that is needed unescaped. It may
// be something else.
func (in object) text(name []byte) bool {
	switch in {
	case line:
		return string(name) == "result" || string(name) == "content" || string(name) == "message"
	case message:
		return string(name) == "content"
	case block:
		return string(name) == "text" || string(name) == "thinking"
	case item:
		return string(name) == "text"
	}
	return false
}

// located returns the field of n for what is only found.
func (n *needs) located(in object, name []byte) *located {
	switch in {
	case line:
		switch string(name) {
		case "output":
			return &n.Output
		case "parameters":
			return &n.Input
		}
	case block:
		switch string(name) {
		case "content":
			return &n.Output
		case "input":
			return &n.Input
		}
	case item:
		switch string(name) {
		case "aggregated_output", "result":
			return &n.Output
		case "arguments":
			return &n.Input
		}
	}
	return nil
}

// object is the position of a member in a line.
type object uint8

const (
	nowhere object = iota
	line
	message
	block
	event
	item
)

// inside returns what a member's object is, and each object of its array.
func (in object) inside(name []byte) object {
	switch in {
	case line:
		switch string(name) {
		case "message":
			return message
		case "event":
			return event
		case "item":
			return item
		}
	case message:
		if string(name) == "content" {
			return block
		}
	case event:
		switch string(name) {
		case "message":
			return message
		case "delta", "content_block":
			return block
		}
	}
	return nowhere
}
