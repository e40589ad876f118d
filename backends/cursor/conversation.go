package cursor

import (
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// conversation describes sessions, which use the Agent Client Protocol.
func conversation() *registry.Session {
	return &registry.Session{
		Use: registry.Use{
			Options: registry.Options{
				Model:  true,
				Access: agent.Accesses(),
				Resume: true,
			},
			SlashCommands: true,
			Prepare:       prepare,
			Command:       sessionCommand,
		},
		Engine:   newEngine,
		Protocol: "acp",
		Delivery: engine.DeliverRPC,
	}
}

// sessionCommand builds the argument list of an agent that speaks the protocol.
// The caller's arguments are options of the program, such as --endpoint, which precede
// the name of its command.
func sessionCommand(inv registry.Invocation) (agent.Command, error) {
	return agent.Command{Args: append(slices.Clone(inv.Args), "acp")}, nil
}

// engine makes the engine of one session. Model and mode are set in the session. The CLI
// uses the existing login; a request to log in would wait for a browser.
func newEngine(registry.Invocation) engine.Engine {
	return &acp.Engine{
		AuthMethod: "cursor_login",
		Modes:      map[agent.Access]string{agent.AccessRead: "ask", agent.AccessWrite: "agent", agent.AccessFull: "agent"},
		Permits:    func(access agent.Access, _ string) bool { return access == agent.AccessFull },
	}
}
