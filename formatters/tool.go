package formatters

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// Bounds of what is shown of tools, in bytes.
const (
	maxInput    = 2 << 10
	maxOutHead  = 4 << 10
	maxOutTail  = 1 << 10
	maxRawInput = 200
)

// call renders a tool call: its name and what it is about.
func (t *text) call(dst []byte, e *agent.Event) []byte {
	if e.Tool == nil {
		return t.endLine(t.mark(t.begin(dst), e, "[tool] "))
	}
	line := string(new(text).toolLine(nil, e.Tool))
	again := e.Delta && e.Tool.ID != "" && e.Tool.ID == t.called.id
	if again && line == t.called.line {
		return dst
	}
	t.called.id, t.called.line = strings.Clone(e.Tool.ID), line
	dst = t.begin(dst)
	if again {
		if input := Essence(e.Tool.Input); input != "" {
			dst = t.endLine(clean(t, append(dst, "  | "...), below(input)))
		}
		return dst
	}
	return t.endLine(append(t.mark(dst, e, "[tool] "), line...))
}

func (t *text) toolLine(dst []byte, tool *agent.Tool) []byte {
	dst = clean(t, dst, oneLine(tool.Name))
	if input := Essence(tool.Input); input != "" {
		if tool.Name != "" {
			dst = append(dst, ": "...)
		}
		dst = clean(t, dst, input)
	}
	return dst
}

// result renders what a tool gave: nothing when it succeeded silently.
func (t *text) result(dst []byte, e *agent.Event) []byte {
	var head, tail []byte
	var omitted int
	var exit *int
	if e.Tool != nil {
		shown := excerpts.Get().(*[]byte)
		defer excerpts.Put(shown)
		head, tail, omitted = excerpt(shown, e.Tool.Output)
		exit = e.Tool.ExitCode
	}
	failed := e.Failed || exit != nil && *exit != 0
	if !failed && len(head) == 0 && omitted == 0 {
		return dst
	}
	dst = t.begin(dst)
	dst = t.mark(dst, e, "[result")
	if failed {
		dst = append(dst, ", failed"...)
	}
	if exit != nil && *exit != 0 {
		dst = append(dst, ", exit code "...)
		dst = strconv.AppendInt(dst, int64(*exit), 10)
	}
	dst = append(dst, ']')
	if len(head) == 0 && omitted == 0 {
		return append(dst, '\n')
	}
	if omitted > 0 || bytes.IndexByte(head, '\n') >= 0 {
		dst = append(dst, '\n')
	} else {
		dst = append(dst, ' ')
	}
	if omitted == 0 {
		return t.endLine(append(dst, head...))
	}
	dst = t.endLine(append(dst, head...))
	dst = append(dst, "["...)
	dst = strconv.AppendInt(dst, int64(omitted), 10)
	dst = append(dst, " bytes left out]\n"...)
	return t.endLine(append(dst, tail...))
}

// excerpts are buffers, which a run does not hold while its agent is silent.
var excerpts = sync.Pool{New: func() any { return new([]byte) }}

// excerpt returns head and tail of a tool's output as they may be shown, whole
// lines where they are not too long, and about how many bytes are left out. They
// are in shown.
func excerpt(shown *[]byte, output agent.Payload) (head, tail []byte, omitted int) {
	first, last, omitted := output.Excerpt(maxOutHead, maxOutTail)
	*shown = payload((*shown)[:0], first)
	cut := len(*shown)
	head = bytes.TrimLeft(*shown, "\r\n")
	if omitted == 0 {
		return bytes.TrimRight(head, "\r\n"), nil, 0
	}
	*shown = payload(*shown, last)
	tail = (*shown)[cut:]
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)/2 {
		omitted += len(head) - i
		head = head[:i]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		omitted += i + 1
		tail = tail[i+1:]
	}
	return head, bytes.TrimRight(tail, "\r\n"), omitted
}

// payload appends the safe part of a payload.
func payload(dst []byte, p agent.Payload) []byte {
	var safe sanitizer // that of a text may be in the middle of a message
	plain, quoted := p.Parts()
	dst = appendSafe(&safe, dst, plain)
	return safe.end(appendSafeText(&safe, dst, quoted))
}

// Essence returns what a reader wants to know of the input of a tool call, such as its
// command or its file, shortened to at most a few thousand bytes; "" for an empty input. It
// is not safe to print: see [Sanitize].
func Essence(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	if s := readInput(input).String(); s != "" {
		return limited(s, maxInput)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil {
		return limited(string(input), maxRawInput)
	}
	switch s := compact.String(); s {
	case "{}", "null", "[]", `""`:
		return ""
	default:
		return limited(s, maxRawInput)
	}
}

// toolInput is what the inputs of the tools of all runtimes have in common.
type toolInput struct {
	command string // a command, or its words
	pattern jsonline.Text
	path    jsonline.Text
	other   jsonline.Text
}

// inputs lists the members of inputs that say what a call is about, the ones that
// say it best first.
var inputs = map[string]int{
	"command": 0, "cmd": 1, "script": 2, "pattern": 3,
	"path": 4, "file_path": 5, "absolute_path": 6, "notebook_path": 7, "dir_path": 8,
	"query": 9, "url": 10, "description": 11, "prompt": 12,
}

// readInput returns an empty one for what is not an object, or has one of the
// members with another value than text.
func readInput(input json.RawMessage) toolInput {
	var in toolInput
	commandRank, pathRank, otherRank := len(inputs), len(inputs), len(inputs)
	r := jsonline.New(input)
	for m := r.Object(); m.Next(); {
		rank, ok := inputs[string(m.Name())]
		switch {
		case !ok:
		case rank < 3:
			if s := commandText(&r); s != "" && rank <= commandRank {
				in.command, commandRank = s, rank
			}
		case rank == 3:
			in.pattern = r.Text()
		case rank < 9:
			if t := r.Text(); !t.IsEmpty() && rank <= pathRank {
				in.path, pathRank = t, rank
			}
		default:
			if t := r.Text(); !t.IsEmpty() && rank <= otherRank {
				in.other, otherRank = t, rank
			}
		}
	}
	if !r.End() {
		return toolInput{}
	}
	return in
}

// commandText takes a command: a text, or a list of words.
func commandText(r *jsonline.Reader) string {
	if r.Kind() != jsonline.Array {
		return head(r.Text())
	}
	var words []byte
	for e := r.Array(); e.Next(); {
		if len(words) > 0 {
			words = append(words, ' ')
		}
		word := r.Text()
		if len(words) <= maxInput {
			words = append(words, head(word)...)
		}
	}
	return string(words)
}

// head returns as much of t as can be shown of an input, and what shows that
// something is missing.
func head(t jsonline.Text) string { return t.Head(6*maxInput + 6).String() }

func (in toolInput) String() string {
	switch {
	case in.command != "":
		return in.command
	case !in.pattern.IsEmpty() && !in.path.IsEmpty():
		return head(in.pattern) + " in " + head(in.path)
	}
	for _, t := range []jsonline.Text{in.pattern, in.path, in.other} {
		if !t.IsEmpty() {
			return head(t)
		}
	}
	return ""
}

// limit returns at most n bytes of s, whole characters.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// limited is limit with a sign that something is missing.
func limited(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return limit(s, n) + "…"
}

// oneLine returns s without line breaks, for names and paths.
func oneLine(s string) string {
	if !strings.ContainsRune(s, '\n') {
		return s
	}
	return strings.ReplaceAll(s, "\n", " ")
}
