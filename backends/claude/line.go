package claude

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// line holds what events need of the frequent lines. The order of their members
// varies.
type line struct {
	kind    jsonline.Text // type
	subtype jsonline.Text
	parent  jsonline.Text // parent_tool_use_id
	uuid    jsonline.Text

	message  message
	event    streamEvent
	hasEvent bool
	error    jsonline.Text // assistant
	apiError bool          // assistant: is_api_error_message
	change   change        // user
}

// message is a message of the model, or of the CLI in the role of the user.
type message struct {
	ok     bool // its content is a text or a list of blocks
	id     jsonline.Text
	blocks []block
}

type block struct {
	kind jsonline.Text // type

	text     jsonline.Text // text
	thinking jsonline.Text // thinking

	id    jsonline.Text // tool_use
	name  jsonline.Text
	input []byte

	toolUseID jsonline.Text // tool_result
	content   agent.Payload
	isError   bool
}

// streamEvent is a piece of a message as the model sends it. These lines come only
// if the caller passes --include-partial-messages.
type streamEvent struct {
	kind     jsonline.Text // type
	id       jsonline.Text // of the message that starts
	delta    jsonline.Text // type of the delta
	text     jsonline.Text
	thinking jsonline.Text
	input    jsonline.Text // partial_json
}

// change is the file that a tool has written, if its result has it.
type change struct {
	kind    jsonline.Text // type
	path    jsonline.Text // filePath
	content jsonline.Text // of a file that is new
	patched bool          // structuredPatch is present
	hunks   []byte        // structuredPatch, a list
}

// read reads raw into l, which keeps its memory, and reports whether it is a
// line of the CLI.
func (l *line) read(raw []byte) bool {
	*l = line{message: message{blocks: l.message.blocks[:0]}}
	r := jsonline.New(raw)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			l.kind = r.Text()
		case "subtype":
			l.subtype = r.Text()
		case "parent_tool_use_id":
			l.parent = r.Text()
		case "uuid":
			if r.Kind() == jsonline.String {
				l.uuid = r.Text()
			}
		case "message":
			if r.Kind() == jsonline.Object { // a text in system lines
				l.message.read(&r)
			}
		case "event":
			l.hasEvent = r.Kind() == jsonline.Object
			l.event.read(&r)
		case "error":
			if r.Kind() == jsonline.String {
				l.error = r.Text()
			}
		case "is_api_error_message":
			l.apiError = r.Bool()
		case "tool_use_result":
			if r.Kind() == jsonline.Object { // it can be a text or a list
				l.change.read(&r)
			}
		}
	}
	return r.End()
}

func (m *message) read(r *jsonline.Reader) {
	*m = message{blocks: m.blocks[:0]}
	for o := r.Object(); o.Next(); {
		switch string(o.Name()) {
		case "id":
			m.id = r.Text()
		case "content":
			m.content(r)
		}
	}
}

// content reads a text or a list of blocks.
func (m *message) content(r *jsonline.Reader) {
	m.blocks = m.blocks[:0]
	switch r.Kind() {
	case jsonline.String:
		m.ok = true
		m.blocks = append(m.blocks, block{kind: textKind, text: r.Text()})
	case jsonline.Array:
		m.ok = true
		for e := r.Array(); e.Next(); {
			m.blocks = append(m.blocks, block{})
			m.blocks[len(m.blocks)-1].read(r)
		}
	}
}

// textKind is the type of a block that the CLI has reduced to its text.
var textKind = func() jsonline.Text {
	r := jsonline.New([]byte(`"text"`))
	return r.Text()
}()

func (b *block) read(r *jsonline.Reader) {
	for o := r.Object(); o.Next(); {
		switch string(o.Name()) {
		case "type":
			b.kind = r.Text()
		case "text":
			b.text = r.Text()
		case "thinking":
			b.thinking = r.Text()
		case "id":
			b.id = r.Text()
		case "name":
			b.name = r.Text()
		case "input":
			b.input = r.Raw()
		case "tool_use_id":
			b.toolUseID = r.Text()
		case "content":
			b.content = texts(r)
		case "is_error":
			b.isError = r.Bool()
		}
	}
}

// texts takes a text, or the texts of a list of blocks, each on a new line.
func texts(r *jsonline.Reader) agent.Payload {
	switch r.Kind() {
	case jsonline.String:
		return agent.Quoted(r.Text())
	case jsonline.Array:
		return list(r)
	}
	return agent.Payload{}
}

func list(r *jsonline.Reader) agent.Payload {
	var first jsonline.Text
	var all []byte // once there is more than one
	for e := r.Array(); e.Next(); {
		if r.Kind() != jsonline.Object {
			continue
		}
		var text jsonline.Text
		for o := r.Object(); o.Next(); {
			if string(o.Name()) == "text" {
				text = r.Text()
			}
		}
		switch {
		case text.IsEmpty():
		case first.IsEmpty():
			first = text
		default:
			if all == nil {
				all = first.AppendTo(nil)
			}
			all = text.AppendTo(append(all, '\n'))
		}
	}
	if all != nil {
		return agent.Plain(string(all))
	}
	return agent.Quoted(first)
}

func (s *streamEvent) read(r *jsonline.Reader) {
	for o := r.Object(); o.Next(); {
		switch string(o.Name()) {
		case "type":
			s.kind = r.Text()
		case "message":
			for m := r.Object(); m.Next(); {
				if string(m.Name()) == "id" {
					s.id = r.Text()
				}
			}
		case "delta":
			for m := r.Object(); m.Next(); {
				switch string(m.Name()) {
				case "type":
					s.delta = r.Text()
				case "text":
					s.text = r.Text()
				case "thinking":
					s.thinking = r.Text()
				case "partial_json":
					s.input = r.Text()
				}
			}
		}
	}
}

func (c *change) read(r *jsonline.Reader) {
	for o := r.Object(); o.Next(); {
		switch string(o.Name()) {
		case "type":
			if r.Kind() == jsonline.String {
				c.kind = r.Text()
			}
		case "filePath":
			if r.Kind() == jsonline.String {
				c.path = r.Text()
			}
		case "content":
			if r.Kind() == jsonline.String {
				c.content = r.Text()
			}
		case "structuredPatch":
			if c.patched = r.Kind() != jsonline.Null; r.Kind() == jsonline.Array {
				c.hunks = r.Raw()
			}
		}
	}
}

// file returns the changed file, if c has one.
func (c *change) file() (agent.FileChange, bool) {
	if c.path.IsEmpty() || !c.patched {
		return agent.FileChange{}, false
	}
	f := agent.FileChange{Path: c.path.String(), Action: "update"}
	if c.kind.Is("create") {
		f.Action = "add"
		f.SetWhole(c.content.String())
	} else {
		f.SetDiff(c.diff())
	}
	return f, true
}

// diff returns the hunks as those of a unified diff, or enough of them for
// [agent.FileChange.SetDiff] to cut.
func (c *change) diff() string {
	var diff []byte
	r := jsonline.New(c.hunks)
	for h := r.Array(); h.Next() && len(diff) <= agent.MaxDiff; {
		var from, fromLines, to, toLines int64
		var lines []byte
		for o := r.Object(); o.Next(); {
			switch string(o.Name()) {
			case "oldStart":
				from = r.Int()
			case "oldLines":
				fromLines = r.Int()
			case "newStart":
				to = r.Int()
			case "newLines":
				toLines = r.Int()
			case "lines":
				for l := r.Array(); l.Next(); {
					if len(lines) <= agent.MaxDiff {
						lines = append(r.Text().AppendTo(lines), '\n')
					}
				}
			}
		}
		diff = append(fmt.Appendf(diff, "@@ -%d,%d +%d,%d @@\n", from, fromLines, to, toLines), lines...)
	}
	if len(diff) <= agent.MaxDiff && !r.End() {
		return "" // they have another form
	}
	return string(diff)
}

// is reports whether the block is of the given kind, or of a kind of it that the
// model's servers run.
func (b *block) is(kind string) bool {
	return strings.HasSuffix(string(b.kind.Bytes()), kind)
}
