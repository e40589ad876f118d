// Package parrot is a runtime of a third party: an experimental agent CLI that
// repeats its prompt. Importing it registers the runtime "parrot".
//
// # Executable
//
// parrot; in this module, go install ./cmd/parrot.
//
// # Options
//
// A model name is passed on. The parrot has no tools, so there is nothing to
// confine: write, the default, is all it knows.
//
// # Project instructions
//
// They go before the prompt.
package parrot

import (
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "parrot"

func init() { registry.Register(Runtime()) }

// Runtime returns the description of the parrot.
func Runtime() registry.Runtime {
	return registry.Runtime{
		ID:          ID,
		Name:        "Parrot",
		Executables: []string{"parrot"},
		InstallURL:  "https://example.com/parrot",
		Run: registry.Use{
			Options: registry.Options{
				Model:  true,
				Access: []agent.Access{agent.AccessWrite},
			},
			Prepare: registry.PrependInstructions,
			Command: command,
		},
		Decoder:       func() formatters.Decoder { return decoder{} },
		Recognize:     recognize,
		ReportsResult: true,
		Instructions:  &registry.Instructions{MaxBytes: instructions.MaxBytes},
	}
}

func command(inv registry.Invocation) (agent.Command, error) {
	args := []string{"--json"}
	if inv.Model != "" {
		args = append(args, "--model="+inv.Model)
	}
	return agent.Command{Args: append(args, inv.Args...), Stdin: inv.Prompt}, nil
}

// line is a line of the parrot's output.
type line struct {
	Parrot  string `json:"parrot"` // hello, says, done
	Session string `json:"session"`
	Text    string `json:"text"`
	Model   string `json:"model"`
	Failed  bool   `json:"failed"`
}

type decoder struct{}

func (decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	var l line
	if json.Unmarshal(raw, &l) == nil {
		switch l.Parrot {
		case "hello":
			return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.Session, Model: l.Model})
		case "says":
			return append(events, agent.Event{Kind: agent.KindText, Text: l.Text})
		case "done":
			return append(events, agent.Event{Kind: agent.KindResult, Failed: l.Failed, Text: l.Text})
		}
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
}

func recognize(raw []byte) bool {
	var l line
	return json.Unmarshal(raw, &l) == nil && l.Parrot != ""
}
