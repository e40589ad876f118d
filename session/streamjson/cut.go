package streamjson

import (
	"bytes"

	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session/engine"
)

// cutLine is a truncated line.
type cutLine struct {
	engine.Head
	mended []byte
	judged bool // it says whether something failed
}

// cutOf returns the line that line is the head of, nil when it is whole or no
// message.
func cutOf(line []byte, long bool, size int64) *cutLine {
	if !long && (len(line) == 0 || line[0] != '{' || bytes.HasSuffix(bytes.TrimRight(line, " \t\r"), []byte("}"))) {
		return nil
	}
	c := &cutLine{Head: engine.Head{Line: line, Long: long, Size: size}}
	c.mended = c.Mended()
	if c.mended == nil {
		if !long {
			return nil
		}
		c.mended = []byte("{}")
	}
	r := jsonline.New(c.mended)
	for m := r.Object(); m.Next(); {
		c.judged = c.judged || string(m.Name()) == "is_error"
	}
	return c
}
