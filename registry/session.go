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

	// Protocol is the name of what the engine speaks, for people.
	Protocol string

	// Delivery is how messages get to the agent. Empty means DeliverStdin.
	Delivery session.Delivery

	// AccountEnv names the variable that moves the folder with the account and
	// the settings of its CLI; empty where there is none.
	AccountEnv string

	// SessionEnv names the variable by which tools of the agent know the session;
	// empty where there is none.
	SessionEnv string

	// Options says which settings a session honours. MaxTurns and Continue do
	// not apply.
	Options Options

	// Prepare replaces Instructions.Prepare, where a session is given the
	// instructions in another way. What it puts into Setup.Prefix stands before
	// the first message.
	Prepare func(ctx context.Context, req agent.Request, w *instructions.Workspace) (agent.Setup, error)
}

// Delivers returns how messages get to the agent.
func (s *Session) Delivers() session.Delivery {
	if s.Delivery == "" {
		return session.DeliverStdin
	}
	return s.Delivery
}
