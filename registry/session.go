package registry

import "github.com/busdk/bus-agent/session/engine"

// A Session describes how a runtime holds a conversation over many turns.
type Session struct {
	// Use builds the command of an agent that speaks the engine's protocol on its
	// standard streams. Stdin is not used. Setup.Prefix goes before the first
	// message.
	Use

	// Engine makes the engine of one session.
	Engine func(inv Invocation) engine.Engine

	// Protocol is the name of the engine's protocol, as users see it.
	Protocol string

	// Delivery is how messages get to the agent. Empty means DeliverStdin.
	Delivery engine.Delivery

	// SessionEnv names the variable with the ID of the session that the CLI sets for
	// its tools; empty if it sets none.
	SessionEnv string
}

// Delivers returns how messages get to the agent.
func (s *Session) Delivers() engine.Delivery {
	if s.Delivery == "" {
		return engine.DeliverStdin
	}
	return s.Delivery
}
