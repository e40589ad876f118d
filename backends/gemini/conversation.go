package gemini

import (
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
)

// conversation is how the Gemini CLI holds a session: the Agent Client Protocol.
func conversation() *registry.Session {
	return &registry.Session{
		Command: func(r agent.Request) (agent.Command, error) {
			c, err := command(r)
			// What it prints and what it resumes is a matter of the protocol.
			c.Args = slices.DeleteFunc(c.Args, func(arg string) bool {
				return arg == "-o" || arg == "stream-json" || arg == "--resume="+r.Resolved.Setup.ResumeID
			})
			c.Args, c.Stdin = append([]string{"--acp"}, c.Args...), ""
			return c, err
		},
		Engine: func(agent.Request) session.Engine {
			return &acp.Engine{Notices: []string{"[MODE_UPDATE] "}, LoadDelay: acp.NextMinute}
		},
		Protocol:   "acp",
		Delivery:   session.DeliverRPC,
		AccountEnv: homeEnv,
		SessionEnv: "GEMINI_SESSION_ID",
		Options: registry.Options{
			Model:         true,
			Access:        agent.Accesses(),
			AllowCommands: true,
			AddDirs:       true,
			Resume:        true,
		},
	}
}
