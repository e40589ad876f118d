// Package delegation lets one agent use others within bounds that the user sets: run
// them, hold sessions with them, read the records. It is what the command "bus-agent mcp"
// offers, without its protocol.
//
// A [Broker] serves one caller. Its [Settings] bound the access of the agents, their
// folder, number and time, and how many levels of agents can be below the caller.
//
// # Nested callers
//
// An agent that a Broker has started gets the variable [EnvBounds]. A Broker that such an
// agent starts takes the bounds from it, and can only narrow them. It also reads the
// variable from the environments of the processes above it, because some CLIs clear the
// environment of the programs they start. This bounds agents that use a Broker. It does
// not bound an agent that starts a CLI itself: the sandbox of its runtime does that.
package delegation
