// Package acp is the engine for agents that speak the Agent Client Protocol,
// version 1: JSON-RPC over their standard streams, one message a line.
//
// The engine offers the agent neither files nor terminals, so the agent uses its
// own. What the protocol does not define is in the fields of
// [Engine], which the author of a runtime sets; facts in comments were seen with
// Gemini CLI 0.61.0.
//
// # Turns
//
// A second prompt during a turn would cancel the first, so a turn cannot be steered.
// An interrupt is answered by the agent as the end of the turn, with its tools
// ended; approval requests that are open then are answered as cancelled, as the
// protocol requires.
//
// # Resuming
//
// An agent that loads a session repeats its history, and not all of it before it
// answers. The engine drops what comes until the agent has answered a request and
// said nothing before it, so that no turn begins with the words of another.
package acp
