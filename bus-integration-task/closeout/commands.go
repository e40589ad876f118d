package closeout

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// A Command is a command line that an agent was seen to run to its end.
type Command struct {
	Line   string `json:"command"`
	Passed bool   `json:"passed"`
	// ExitCode is nil if the runtime does not report it.
	ExitCode *int `json:"exit_code,omitempty"`
	// Ended is when the end was reported; zero if that is not known.
	Ended time.Time `json:"ended,omitzero"`
}

// Bounds of a [CommandLog].
const (
	MaxCommands = 1000     // kept; the oldest are dropped
	MaxCommand  = 16 << 10 // bytes of a command line; a longer one proves nothing
)

// A CommandLog collects the commands of a session from its events. The zero value is
// ready to use. It is used by one goroutine at a time, such as that of
// session.Options.Events, and keeps no memory of the events.
type CommandLog struct {
	// Mask, if set, takes the secrets out of a line before it is cut.
	Mask func(string) string

	running  map[string]string // lines by ID of the tool call
	commands []Command
}

// Add notes the command of a tool call, or its end.
func (l *CommandLog) Add(e *agent.Event) {
	if e.Tool == nil || e.Tool.ID == "" {
		return
	}
	switch e.Kind {
	case agent.KindToolCall:
		if text := l.masked(commandOf(e.Tool.Input)); text != "" && len(l.running) < MaxCommands {
			if l.running == nil {
				l.running = map[string]string{}
			}
			l.running[e.Tool.ID] = text
		}
	case agent.KindToolResult:
		text, ok := l.running[e.Tool.ID]
		if !ok {
			return
		}
		delete(l.running, e.Tool.ID)
		c := Command{Line: shortened(text, MaxCommand), Passed: !e.Failed && len(text) <= MaxCommand, Ended: time.Now()}
		if code := e.Tool.ExitCode; code != nil {
			c.ExitCode = new(*code)
			c.Passed = c.Passed && *code == 0
		}
		if len(l.commands) == MaxCommands {
			l.commands = slices.Delete(l.commands, 0, 1)
		}
		l.commands = append(l.commands, c)
	}
}

func (l *CommandLog) masked(text string) string {
	if l.Mask == nil {
		return text
	}
	return l.Mask(text)
}

// Commands returns the commands in the order in which they ended.
func (l *CommandLog) Commands() []Command { return slices.Clone(l.commands) }

// commandOf returns the command line in a tool's input, "" if it has none or continues in
// the background after its result.
func commandOf(input json.RawMessage) string {
	var call struct {
		Command    json.RawMessage `json:"command"`
		Background bool            `json:"run_in_background"`
	}
	if json.Unmarshal(input, &call) != nil || call.Background {
		return ""
	}
	var text string
	if json.Unmarshal(call.Command, &text) == nil {
		return text
	}
	var words []string
	if json.Unmarshal(call.Command, &words) != nil {
		return ""
	}
	return CommandLine(words)
}
