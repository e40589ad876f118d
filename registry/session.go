package registry

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/session"
)

// A Session is how a runtime holds a conversation over many turns.
type Session struct {
	// Command turns a settled request into the invocation of an agent that
	// speaks the engine's protocol on its standard streams. It is like
	// Runtime.Command, but the prompt is no part of it and Stdin is not used.
	Command func(agent.Request) (agent.Command, error)

	// Engine makes the engine of one session for a settled request.
	Engine func(agent.Request) session.Engine

	// Options says which settings a session honours. MaxTurns and Continue do
	// not apply.
	Options Options

	// Prepare replaces Instructions.Prepare, where a session is given the
	// instructions in another way. What it puts into Setup.Prefix stands before
	// the first message.
	Prepare func(ctx context.Context, req agent.Request, w *instructions.Workspace) (agent.Setup, error)
}
