package gemini

import (
	"strings"

	"github.com/busdk/bus-agent/jsonline"
)

// line holds the members of every kind of line.
type line struct {
	kind      jsonline.Text // type
	timestamp jsonline.Text
	uuid      jsonline.Text // only in lines of other runtimes
	sessionID jsonline.Text // init
	model     jsonline.Text

	role    jsonline.Text // message
	content jsonline.Text
	delta   bool

	toolName   jsonline.Text // tool_use
	toolID     jsonline.Text // tool_result too
	parameters []byte

	status jsonline.Text // tool_result, result
	output jsonline.Text
	error  problem
	failed bool // it has an error
	stats  *stats

	severity jsonline.Text // error
	message  jsonline.Text
}

type problem struct {
	kind    jsonline.Text // type
	message jsonline.Text
}

type stats struct {
	tokens
	models map[string]tokens
}

type tokens struct {
	total, input, output, cached int64
}

// read reads raw into l and reports whether it is a line of the CLI.
func (l *line) read(raw []byte) bool {
	*l = line{}
	r := jsonline.New(raw)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			l.kind = r.Text()
		case "timestamp":
			l.timestamp = r.Text()
		case "uuid":
			l.uuid = r.Text()
		case "session_id":
			l.sessionID = r.Text()
		case "model":
			l.model = r.Text()
		case "role":
			l.role = r.Text()
		case "content":
			l.content = r.Text()
		case "delta":
			l.delta = r.Bool()
		case "tool_name":
			l.toolName = r.Text()
		case "tool_id":
			l.toolID = r.Text()
		case "parameters":
			l.parameters = r.Raw()
		case "status":
			l.status = r.Text()
		case "output":
			l.output = r.Text()
		case "error":
			l.failed = r.Kind() == jsonline.Object
			l.error.read(&r)
		case "stats":
			if r.Kind() == jsonline.Object {
				l.stats = new(stats)
				l.stats.read(&r)
			}
		case "severity":
			l.severity = r.Text()
		case "message":
			l.message = r.Text()
		}
	}
	return r.End()
}

func (p *problem) read(r *jsonline.Reader) {
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			p.kind = r.Text()
		case "message":
			p.message = r.Text()
		}
	}
}

func (s *stats) read(r *jsonline.Reader) {
	for m := r.Object(); m.Next(); {
		if string(m.Name()) != "models" {
			s.member(r, m.Name())
			continue
		}
		for models := r.Object(); models.Next(); {
			name := strings.ToValidUTF8(string(models.Name()), "\ufffd")
			var t tokens
			for m := r.Object(); m.Next(); {
				t.member(r, m.Name())
			}
			if s.models == nil {
				s.models = map[string]tokens{}
			}
			s.models[name] = t
		}
	}
}

func (t *tokens) member(r *jsonline.Reader, name []byte) {
	switch string(name) {
	case "total_tokens":
		t.total = r.Int()
	case "input_tokens":
		t.input = r.Int()
	case "output_tokens":
		t.output = r.Int()
	case "cached":
		t.cached = r.Int()
	}
}
