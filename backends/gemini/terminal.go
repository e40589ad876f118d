package gemini

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// interactive describes the Gemini CLI in a terminal (0.61.0).
func interactive() *registry.Terminal {
	options := conversation().Options
	options.MCPServers = true // Gemini CLI starts none in an untrusted folder, where sessions are
	return &registry.Terminal{
		Terminal: engine.Terminal{
			Prompt: ">   Type your message",
			// It ignores an Enter during its start.
			Placeholder: true,
			// Before an answer. It loads a session after it shows the prompt.
			Restored: []string{"✦ "},
			// A message that comes during the start is queued, and then nothing shows that
			// it was taken.
			Busy:     []string{"(esc to cancel", "Queued (press ↑ to edit)"},
			Finished: []string{"✦ ", "✕ "},
			Quiet:    10 * time.Second,
			WarmUp:   5 * time.Second,
			// "Do not enable".
			Dialogs:   []engine.Dialog{{Contains: "New Agents Discovered", Keys: []string{"Down", "Enter"}}},
			Approvals: []engine.ApprovalDialog{{Contains: "suggest changes (esc)", Accept: []string{"1"}, Decline: []string{"Escape"}}},
			Commands:  "/!$",
			SpaceLast: true,
		},
		Use: registry.Use{
			Options: options,
			Check:   check,
			Prepare: prepareInteractive,
			Command: interactiveCommand,
		},
		Resume: registry.ResumeFlag,
	}
}

// interactiveCommand builds the argument list of the interactive CLI: that of a run
// without the output format.
func interactiveCommand(inv registry.Invocation) (agent.Command, error) {
	args, env := options(inv)
	return agent.Command{Args: append(args, inv.Args...), Env: env}, nil
}

// prepareInteractive is prepare with a session ID that is set at the start.
func prepareInteractive(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup, err := arrange(inv, w, false, (*settings).withoutAgents)
	if err != nil {
		return setup, err
	}
	setup.BeginSession(inv)
	return setup, nil
}

// withoutAgents leaves out the agents of a repository, which can have MCP servers.
// Gemini CLI can offer to enable them at any time, and the Enter of a message would
// accept.
func (s *settings) withoutAgents() error {
	return s.all.set(false, "experimental", "enableAgents")
}
