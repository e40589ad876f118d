package formatters

import (
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// questions renders questions of the agent, with their options numbered.
func (t *text) questions(dst []byte, e *agent.Event) []byte {
	if e.Failed {
		return t.line(dst, "[question, declined] ", e.Text)
	}
	if e.Text != "" {
		dst = t.line(dst, "[question] ", e.Text)
	}
	for i := range e.Questions {
		q := &e.Questions[i]
		dst = append(dst, "[question] "...)
		if q.Header != "" {
			dst = append(clean(t, dst, oneLine(q.Header)), ": "...)
		}
		dst = t.endLine(clean(t, dst, below(strings.TrimRight(q.Text, "\n"))))
		for n, o := range q.Options {
			dst = append(dst, "  | "...)
			dst = strconv.AppendInt(dst, int64(n+1), 10)
			dst = append(dst, ". "...)
			dst = clean(t, dst, oneLine(o.Label))
			if o.Description != "" {
				dst = clean(t, append(dst, ": "...), oneLine(o.Description))
			}
			dst = append(dst, '\n')
		}
	}
	return dst
}
