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
				MCPServers:         true,
				AllowTools:         true,
				DenyTools:          true,
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

				Describe:  describe,
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
	return files(input)
}

// files returns the files that the input of a tool names, as edits does.
func files(input json.RawMessage) []string {
	unknown := []string{""}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return unknown
	}
	var names []string
	for member, value := range members {
		if !strings.HasSuffix(member, "path") {
			continue
		}
		var name string
		if json.Unmarshal(value, &name) != nil || !filepath.IsAbs(name) {
			return unknown
		}
		names = append(names, name)
	}
	if names == nil {
		return unknown
	}
	return names
}

// kinds lists the tools that are of a kind other than agent.ToolOther. What is allowed with
// a change of the mode is not known.
var kinds = map[string]agent.ToolKind{
	"Read": agent.ToolRead, "NotebookRead": agent.ToolRead, "LS": agent.ToolRead, "Glob": agent.ToolRead, "Grep": agent.ToolRead,
	"Edit": agent.ToolEdit, "MultiEdit": agent.ToolEdit, "Write": agent.ToolEdit, "NotebookEdit": agent.ToolEdit,
	"Bash": agent.ToolExecute, "WebFetch": agent.ToolFetch, "WebSearch": agent.ToolFetch,
	"EnterPlanMode": "", "ExitPlanMode": "",
}

// describe adds what the use of a tool would allow. The files of Glob and Grep are not
// known: their patterns can name any.
func describe(tool *agent.Tool, start engine.Start) {
	kind, known := kinds[tool.Name]
	if tool.Kind = kind; !known {
		tool.Kind = agent.ToolOther
	}
	switch {
	case kind == agent.ToolExecute:
		tool.Command = start.Command(tool.Input)
	case kind == agent.ToolEdit, kind == agent.ToolRead && tool.Name != "Glob" && tool.Name != "Grep":
		engine.SetFiles(tool, files(tool.Input))
	}
}

// subject returns the input of a tool that changes no file, without the model's description.
func subject(_ string, input json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return string(input)
	}
	delete(members, "description")
	return string(encode(members))
}
