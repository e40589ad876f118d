package formatters

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
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
	dst = t.mark(dst, e, "[tool] ")
	if e.Tool != nil {
		dst = t.toolLine(dst, e.Tool)
	}
	return t.endLine(dst)
}

func (t *text) toolLine(dst []byte, tool *agent.Tool) []byte {
	dst = t.clean(dst, oneLine(tool.Name))
	if input := essence(tool.Input); input != "" {
		if tool.Name != "" {
			dst = append(dst, ": "...)
		}
		dst = t.clean(dst, input)
	}
	return dst
}

// result renders what a tool gave: nothing when it succeeded silently.
func (t *text) result(dst []byte, e *agent.Event) []byte {
	var output string
	var exit *int
	if e.Tool != nil {
		output, exit = strings.Trim(e.Tool.Output, "\r\n"), e.Tool.ExitCode
	}
	failed := e.Failed || exit != nil && *exit != 0
	if !failed && output == "" {
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
	if output == "" {
		return append(dst, '\n')
	}
	if strings.ContainsRune(output, '\n') {
		dst = append(dst, '\n')
	} else {
		dst = append(dst, ' ')
	}
	return t.output(dst, output)
}

// output renders head and tail of a tool's output.
func (t *text) output(dst []byte, output string) []byte {
	if len(output) <= maxOutHead+maxOutTail {
		return t.endLine(t.clean(dst, output))
	}
	head := limit(output, maxOutHead)
	if i := strings.LastIndexByte(head, '\n'); i > maxOutHead/2 {
		head = head[:i]
	}
	tail := output[len(output)-maxOutTail:]
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < maxOutTail/2 {
		tail = tail[i+1:]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	dst = t.endLine(t.clean(dst, head))
	dst = append(dst, "["...)
	dst = strconv.AppendInt(dst, int64(len(output)-len(head)-len(tail)), 10)
	dst = append(dst, " bytes left out]\n"...)
	return t.endLine(t.clean(dst, tail))
}

// essence returns what a reader wants to know of a tool's input, bounded.
func essence(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	var in toolInput
	if json.Unmarshal(input, &in) == nil {
		if s := in.String(); s != "" {
			return limited(s, maxInput)
		}
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
	Command      words  `json:"command"`
	Cmd          words  `json:"cmd"`
	Script       words  `json:"script"`
	Pattern      string `json:"pattern"`
	FilePath     string `json:"file_path"`
	AbsolutePath string `json:"absolute_path"`
	NotebookPath string `json:"notebook_path"`
	DirPath      string `json:"dir_path"`
	Path         string `json:"path"`
	Query        string `json:"query"`
	URL          string `json:"url"`
	Description  string `json:"description"`
	Prompt       string `json:"prompt"`
}

func (in toolInput) String() string {
	for _, s := range []string{string(in.Command), string(in.Cmd), string(in.Script)} {
		if s != "" {
			return s
		}
	}
	path := in.Path
	for _, s := range []string{in.FilePath, in.AbsolutePath, in.NotebookPath, in.DirPath} {
		if path == "" {
			path = s
		}
	}
	if in.Pattern != "" && path != "" {
		return in.Pattern + " in " + path
	}
	for _, s := range []string{in.Pattern, path, in.Query, in.URL, in.Description, in.Prompt} {
		if s != "" {
			return s
		}
	}
	return ""
}

// words is a string, or a list of strings joined with spaces.
type words string

func (w *words) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*w = words(s)
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*w = words(strings.Join(list, " "))
	return nil
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
