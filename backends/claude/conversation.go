package claude

import (
	"encoding/json"
	"os"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/streamjson"
)

// conversation is how Claude Code holds a session: messages as lines of JSON on
// its standard input.
func conversation() *registry.Session {
	return &registry.Session{
		Command: func(r agent.Request) (agent.Command, error) {
			c, err := command(r, os.Geteuid() == 0)
			c.Args = append([]string{"--input-format", "stream-json", "--permission-prompt-tool", "stdio"}, c.Args...)
			c.Stdin = ""
			return c, err
		},
		Engine: func(agent.Request) session.Engine {
			return &streamjson.Engine{
				Decoder: func() formatters.Decoder { return new(decoder) },
				// Reading is more than a mode: tools are taken away at the start.
				Modes:   map[agent.Access]string{agent.AccessWrite: "acceptEdits", agent.AccessFull: "bypassPermissions"},
				Subject: subject,
			}
		},
		Protocol:   "streamjson",
		Delivery:   session.DeliverStdin,
		AccountEnv: homeEnv,
		SessionEnv: "CLAUDE_SESSION_ID",
		Options: registry.Options{
			Model:         true,
			Efforts:       agent.Efforts(),
			Access:        agent.Accesses(),
			AllowCommands: true,
			AddDirs:       true,
			Resume:        true,
		},
	}
}

// subject is the file that a tool changes, or what else it is asked for. How the
// model describes it is no part of that.
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
