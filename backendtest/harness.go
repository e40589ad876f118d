package backendtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
)

// A Harness is a runtime and what the suite needs to know of its CLI to play it.
// The fields of the runtime alone decide which rules apply.
type Harness struct {
	Runtime registry.Runtime

	// Lines are what its CLI writes.
	Lines Lines

	// Prompt says where its CLI reads the prompt; standard input by default.
	Prompt PromptPlace

	// NativeInstructions says that the CLI itself finds AGENTS.md, from its
	// current directory upwards. Such a runtime must start the CLI there and
	// must not deliver the text as well.
	NativeInstructions bool

	// SessionFile is the file in which the CLI keeps the session of Lines.Session,
	// for runtimes that look for it before they resume one. $NAME in it is a
	// variable of the agent.
	SessionFile string

	// Tool is the name of a tool of the CLI, for runtimes that make a list of its tools
	// themselves; any name otherwise.
	Tool string

	// Env holds further variables of the caller's environment, as "NAME=value".
	Env []string
}

// PromptPlace is where a CLI reads the prompt.
type PromptPlace int

const (
	// PromptStdin: the end of standard input.
	PromptStdin PromptPlace = iota
	// PromptArgument: an argument after "--".
	PromptArgument
	// PromptDescriptor: the end of the first inherited file.
	PromptDescriptor
)

// Lines are what a CLI writes for each kind of report: one or more lines, without
// the last line break. "{text}" is replaced by plain words, which need no quoting,
// and "{n}" by a number that differs from line to line. A field is empty if the CLI
// reports no such thing. Text is required; Success and Failure are if the runtime
// reports a result, and Session is if the runtime has a separate output format and
// resumes sessions. Output begins with the first field that is not empty.
type Lines struct {
	Session    string // a session begins, with an ID
	Text       string // a whole message, {text}
	ToolCall   string // the agent calls a tool
	ToolResult string // and has its output, {text}
	Success    string // the turn ends well
	Failure    string // the turn fails because of {text}
	Retry      string // a request is tried again because of {text}
	Unknown    string // an event of a later version
}

// fill returns a line with its text and a line break.
func fill(line, text string, n int) string {
	return strings.NewReplacer("{text}", text, "{n}", strconv.Itoa(n)).Replace(line) + "\n"
}

// A script is what an agent writes.
type script struct {
	lines Lines
	n     int
}

func (h *Harness) script() *script { return &script{lines: h.Lines} }

// say returns the step that writes the line with text; none for an empty line.
func (s *script) say(line, text string) []Step {
	if line == "" {
		return nil
	}
	s.n++
	return []Step{Print(fill(line, text, s.n))}
}

// answer is the steps of a run that succeeds with text.
func (h *Harness) answer(text string) []Step {
	s := h.script()
	return slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, text), s.say(s.lines.Success, ""))
}

// incomplete returns which lines the harness lacks.
func (h *Harness) incomplete() (missing []string) {
	need := func(when bool, name, line string) {
		if when && line == "" {
			missing = append(missing, "Lines."+name)
		}
	}
	rt := &h.Runtime
	structured := rt.Recognize != nil
	need(true, "Text", h.Lines.Text)
	need(rt.ReportsResult, "Success", h.Lines.Success)
	need(rt.ReportsResult, "Failure", h.Lines.Failure)
	need(structured && (rt.Run.Options.Resume || rt.Run.Options.Continue), "Session", h.Lines.Session)
	need(h.Lines.ToolCall != "", "ToolResult", h.Lines.ToolResult)
	need(structured, "Unknown", h.Lines.Unknown)
	if h.Lines.Text != "" && !strings.Contains(h.Lines.Text, "{text}") {
		missing = append(missing, "{text} in Lines.Text")
	}
	return missing
}

// all returns every line of the harness, filled.
func (h *Harness) all() []string {
	var all []string
	l := h.Lines
	for i, line := range []string{l.Session, l.Text, l.ToolCall, l.ToolResult, l.Unknown, l.Retry, l.Failure, l.Success} {
		if line == "" {
			continue
		}
		all = append(all, strings.Split(strings.TrimSuffix(fill(line, "some words", i), "\n"), "\n")...)
	}
	return all
}

// sessionID returns the ID that the runtime reads from its session line.
func (h *Harness) sessionID() string {
	if h.Lines.Session == "" {
		return "session-1"
	}
	var id string
	stream := formatters.NewStream(h.Runtime.NewDecoder(), func(e *agent.Event) error {
		if e.Kind == agent.KindSessionStarted && e.SessionID != "" {
			id = strings.Clone(e.SessionID)
		}
		return nil
	})
	stream.Write([]byte(fill(h.Lines.Session, "", 1)))
	stream.Close()
	return id
}

// tokens returns every name the runtime can be selected by.
func (h *Harness) tokens() []string {
	tokens := []string{h.Runtime.ID}
	for _, v := range h.Runtime.Variants {
		tokens = append(tokens, h.Runtime.ID+":"+v)
	}
	return tokens
}

// access returns an access word that the runtime honours; empty for the default.
func (h *Harness) access() agent.Access {
	words := h.Runtime.Run.Options.Access
	if len(words) == 0 || slices.Contains(words, agent.AccessWrite) {
		return ""
	}
	return words[0]
}

// received returns what the CLI takes for the prompt.
func (h *Harness) received(seen *Invocation) (string, error) {
	switch h.Prompt {
	case PromptArgument:
		i := slices.Index(seen.Args, "--")
		if i < 0 || i != len(seen.Args)-2 {
			return "", fmt.Errorf("the arguments %s do not end with -- and the prompt", quoted(seen.Args))
		}
		return seen.Args[i+1], nil
	case PromptDescriptor:
		if len(seen.Descriptors) == 0 {
			return "", fmt.Errorf("no file was handed to the CLI")
		}
		return string(seen.Descriptors[0]), nil
	}
	return string(seen.Stdin), nil
}

// quoted returns arguments as they may be printed, long ones cut.
func quoted(args []string) string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = clip(a)
	}
	return "[" + strings.Join(list, " ") + "]"
}

// clip returns text quoted, and cut where it is long.
func clip(text string) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
	}
	return strconv.Quote(text)
}
