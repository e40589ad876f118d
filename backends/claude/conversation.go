package claude

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/streamjson"
)

// conversation describes sessions: Claude Code reads messages as lines of JSON from
// its standard input.
func conversation() *registry.Session {
	return &registry.Session{
		Use: registry.Use{
			Options: registry.Options{
				Model:         true,
				Efforts:       agent.Efforts(),
				Access:        agent.Accesses(),
				AllowCommands: true,
				AddDirs:       true,
				Resume:        true,
				Attachments:   attachments(),

				AppendSystemPrompt: true,
			},
			SlashCommands: true,
			Check:         check,
			Prepare:       prepare,
			Command:       sessionCommand,
		},
		Engine: func(registry.Invocation) engine.Engine {
			return &streamjson.Engine{
				Decoder: func() formatters.Decoder { return new(decoder) },
				// Read access also removes tools, which only a start can do.
				Modes:   map[agent.Access]string{agent.AccessWrite: askMode, agent.AccessFull: fullMode},
				Subject: subject,
				Edits:   edits,

				Questions: questions,
				Answered:  answered,
			}
		},
		Protocol:   "streamjson",
		Delivery:   engine.DeliverStdin,
		SessionEnv: "CLAUDE_SESSION_ID",
	}
}

// sessionCommand builds the argument list of an agent that takes messages.
func sessionCommand(inv registry.Invocation) (agent.Command, error) {
	args := []string{"--input-format", "stream-json", "--permission-prompt-tool", "stdio", "-p", "--output-format", "stream-json", "--verbose"}
	args = append(args, options(askMode, inv)...)
	return agent.Command{Args: append(args, inv.Args...), Env: env(inv)}, nil
}

// edits returns the files that a tool changes. Only absolute names are known: the model's
// commands can change the directory that a relative name refers to. An empty name stands
// for a file that is not known.
func edits(tool string, input json.RawMessage) []string {
	if !slices.Contains([]string{"Edit", "MultiEdit", "Write", "NotebookEdit"}, tool) {
		return nil
	}
	unknown := []string{""}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return unknown
	}
	var files []string
	for member, value := range members {
		if !strings.HasSuffix(member, "path") {
			continue
		}
		var name string
		if json.Unmarshal(value, &name) != nil || !filepath.IsAbs(name) {
			return unknown
		}
		files = append(files, name)
	}
	if files == nil {
		return unknown
	}
	return files
}

// subject returns the file that a tool changes, or else its main input. The model's
// description is ignored.
func subject(_ string, input json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return string(input)
	}
	for _, file := range []string{"file_path", "notebook_path"} {
		if name := members[file]; name != nil {
			return string(name)
		}
	}
	delete(members, "description")
	return string(encode(members))
}
