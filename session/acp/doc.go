// Package acp is the engine for agents that speak the Agent Client Protocol,
// version 1: JSON-RPC over their standard streams, one message a line.
//
// The engine offers the agent neither files nor terminals, so the agent uses its
// own. What the agent must be told beyond the protocol is in the fields of
// [Engine], which the author of a runtime sets; facts in comments were seen with
// Gemini CLI 0.61.0.
//
// # Turns
//
// A second prompt during a turn would cancel the first, so there is no steering.
// An interrupt is answered by the agent as the end of the turn, with its tools
// ended; questions that are open then are answered as cancelled, as the protocol
// demands.
//
// # Resuming
//
// An agent that loads a session repeats its history, and not all of it before it
// answers. The engine drops what comes until the agent has answered a request and
// said nothing before it, so that no turn begins with the words of another.
//
// # The connection
//
// JSON-RPC itself is that of the protocol's Go SDK. The engine hands it one line
// at a time, and the next one when that is dealt with: the SDK alone would take
// questions and updates out of order, lose an answer that is followed by the end
// of the output, and give up the connection when many updates wait.
package acp
