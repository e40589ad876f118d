package cursor

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// line is what any of the lines can hold.
type line struct {
	kind      jsonline.Text // type
	subtype   jsonline.Text
	sessionID jsonline.Text

	hasUUID      bool // on lines that are another runtime's
	hasKeySource bool // system init: apiKeySource
	hasRequestID bool // result

	model       jsonline.Text // system init
	hasMessage  bool          // assistant, user
	said        string        // the text of the message
	text        jsonline.Text // thinking
	timestamp   int64         // assistant: timestamp_ms
	modelCallID jsonline.Text // assistant

	callID   jsonline.Text // tool_call
	toolCall []byte

	isError bool // result
	result  jsonline.Text
	usage   *agent.Usage
}

// read reads raw into l and reports whether it is a line of the CLI.
func (l *line) read(raw []byte) bool {
	*l = line{}
	r := jsonline.New(raw)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			l.kind = r.Text()
		case "subtype":
			l.subtype = r.Text()
		case "session_id":
			l.sessionID = r.Text()
		case "uuid":
			l.hasUUID = !r.Text().IsEmpty()
		case "apiKeySource":
			l.hasKeySource = r.Kind() == jsonline.String
		case "request_id":
			l.hasRequestID = r.Kind() == jsonline.String
		case "model":
			l.model = r.Text()
		case "message":
			l.hasMessage = r.Kind() == jsonline.Object
			l.said = readMessage(&r)
		case "text":
			l.text = r.Text()
		case "timestamp_ms":
			l.timestamp = r.Int()
		case "model_call_id":
			l.modelCallID = r.Text()
		case "call_id":
			l.callID = r.Text()
		case "tool_call":
			if l.toolCall = r.Raw(); string(l.toolCall) == "null" {
				l.toolCall = nil
			}
		case "is_error":
			l.isError = r.Bool()
		case "result":
			l.result = r.Text()
		case "usage":
			if r.Kind() == jsonline.Object {
				l.usage = readUsage(&r)
			}
		}
	}
	return r.End()
}

// readMessage takes a message and returns the texts of its blocks.
func readMessage(r *jsonline.Reader) string {
	var first jsonline.Text
	var all []byte // once there is more than one
	for m := r.Object(); m.Next(); {
		if string(m.Name()) != "content" {
			continue
		}
		for e := r.Array(); e.Next(); {
			var kind, text jsonline.Text
			for o := r.Object(); o.Next(); {
				switch string(o.Name()) {
				case "type":
					kind = r.Text()
				case "text":
					text = r.Text()
				}
			}
			switch {
			case !kind.Is("text") || text.IsEmpty():
			case first.IsEmpty():
				first = text
			default:
				if all == nil {
					all = first.AppendTo(nil)
				}
				all = text.AppendTo(all)
			}
		}
	}
	if all != nil {
		return string(all)
	}
	return first.String()
}

// readUsage takes what is not documented; newer versions send it.
func readUsage(r *jsonline.Reader) *agent.Usage {
	var input, cacheRead, cacheWrite, output int64
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "inputTokens":
			input = r.Int()
		case "cacheReadTokens":
			cacheRead = r.Int()
		case "cacheWriteTokens":
			cacheWrite = r.Int()
		case "outputTokens":
			output = r.Int()
		}
	}
	return &agent.Usage{Input: input + cacheRead + cacheWrite, Cached: cacheRead, Output: output}
}
