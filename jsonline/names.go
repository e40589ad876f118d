package jsonline

import (
	"hash/maphash"
	"unicode/utf8"
)

// nameSlots and maxName bound what Names keeps.
const (
	nameSlots = 64
	maxName   = 128
)

// Names turns texts that repeat, like the names of tools and the IDs of
// messages, into strings without a copy each time. The zero value is ready. It
// keeps a bounded number of them. It is used by one goroutine.
type Names struct {
	seen []string // each where its hash says
}

// nameSeed is the same for all: nothing depends on it but which names push out
// which.
var nameSeed = maphash.MakeSeed()

// String returns t as a string.
func (n *Names) String(t Text) string {
	raw := t.raw
	if len(raw) == 0 || t.escaped || len(raw) > maxName {
		return t.String()
	}
	if n.seen == nil {
		n.seen = make([]string, nameSlots)
	}
	name := &n.seen[maphash.Bytes(nameSeed, raw)%nameSlots]
	if *name == string(raw) {
		return *name
	}
	if !utf8.Valid(raw) {
		return t.String()
	}
	*name = string(raw)
	return *name
}
