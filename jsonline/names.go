package jsonline

import "unicode/utf8"

// maxNames and maxName bound what Names keeps.
const (
	maxNames = 256
	maxName  = 128
)

// Names turns texts that repeat, like the names of tools and the IDs of
// messages, into strings without a copy each time. The zero value is ready. It
// keeps a bounded number of them. It is used by one goroutine.
type Names struct {
	seen map[string]string
}

// String returns t as a string.
func (n *Names) String(t Text) string {
	raw := t.raw
	if t.escaped || len(raw) > maxName || !utf8.Valid(raw) {
		return t.String()
	}
	if name, ok := n.seen[string(raw)]; ok {
		return name
	}
	if n.seen == nil {
		n.seen = map[string]string{}
	}
	if len(n.seen) >= maxNames {
		clear(n.seen)
	}
	name := string(raw)
	n.seen[name] = name
	return name
}
