package rest

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// line is what any of the lines of bus-agent-rest can hold.
type line struct {
	kind     jsonline.Text // type
	agent    jsonline.Text // start
	provider jsonline.Text // start
	model    jsonline.Text // start, answer
	text     jsonline.Text // all but usage

	attempt     int64 // retry
	maxAttempts int64

	usage agent.Usage // usage

	reason  jsonline.Text // result: error
	failure jsonline.Text // result, retry
}

// read reads raw into l and reports whether it can be a line of bus-agent-rest.
func (l *line) read(raw []byte) bool {
	*l = line{}
	r := jsonline.New(raw)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			l.kind = r.Text()
		case "agent":
			l.agent = r.Text()
		case "provider":
			l.provider = r.Text()
		case "model":
			l.model = r.Text()
		case "text":
			l.text = r.Text()
		case "attempt":
			l.attempt = r.Int()
		case "max_attempts":
			l.maxAttempts = r.Int()
		case "input":
			l.usage.Input = r.Int()
		case "cached":
			l.usage.Cached = r.Int()
		case "output":
			l.usage.Output = r.Int()
		case "reasoning":
			l.usage.Reasoning = r.Int()
		case "cost_usd":
			if !r.Null() {
				l.usage.CostUSD = new(r.Float())
			}
		case "error":
			l.reason = r.Text()
		case "failure":
			l.failure = r.Text()
		}
	}
	return r.End()
}
