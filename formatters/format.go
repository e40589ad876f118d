package formatters

import (
	"errors"

	"github.com/busdk/bus-agent/agent"
)

// Format renders the whole output of one run as the source's formatter does
// while it arrives, and standard error after it. Either may be nil; standard
// error is usually left out, because agents write noise there at every run.
//
// With the formatter [Raw] both are returned unchanged, one after the other.
// Equal input gives equal text. The only error is a source without decoder or
// formatter.
func Format(src Source, stdout, stderr []byte) (string, error) {
	if src == nil {
		return "", &agent.Error{Kind: agent.ErrUsage, Err: errors.New("formatters: no runtime to format for")}
	}
	f := src.NewFormatter()
	if f == nil {
		return "", &agent.Error{Kind: agent.ErrUsage, Err: errors.New("formatters: the runtime has no formatter")}
	}
	if IsRaw(f) {
		return string(stdout) + string(stderr), nil
	}
	d := src.NewDecoder()
	if d == nil {
		return "", &agent.Error{Kind: agent.ErrUsage, Err: errors.New("formatters: the runtime has no decoder")}
	}
	var text []byte
	s := NewStream(d, func(e *agent.Event) error {
		text = f.Append(text, e)
		return nil
	})
	// Neither can fail, because the callback does not.
	s.Write(stdout)
	s.Close()
	if len(stderr) > 0 {
		text = endLine(text)
		text = Sanitize(text, stderr)
	}
	return string(endLine(text)), nil
}

// endLine appends a line break unless text is empty or ends with one.
func endLine(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(text, '\n')
}

// Raw returns the formatter that represents the agent's own lines, unchanged.
// Events do not hold them, so a caller that finds [IsRaw] true passes the bytes on
// itself, as the runner and [Format] do. Events are rendered as nothing.
func Raw() agent.Formatter { return raw{} }

// IsRaw reports whether f represents the agent's lines as they are: whether it
// came from [Raw], or has a method Raw() bool that returns true.
func IsRaw(f agent.Formatter) bool {
	r, ok := f.(interface{ Raw() bool })
	return ok && r.Raw()
}

// JSON returns the renderer of the output format "events": each event as one
// object of JSON on one line, see agent.Event.AppendJSON.
func JSON() agent.Formatter { return jsonLines{} }

type jsonLines struct{}

func (jsonLines) Append(dst []byte, e *agent.Event) []byte {
	return append(e.AppendJSON(dst), '\n')
}

type raw struct{}

func (raw) Append(dst []byte, _ *agent.Event) []byte { return dst }
func (raw) Raw() bool                                { return true }
