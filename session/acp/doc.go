// Package acp is the engine for agents that speak the Agent Client Protocol,
// version 1: JSON-RPC over their standard streams, one message a line.
//
// The engine offers the agent neither files nor terminals, so the agent uses its
// own. The fields of [Engine], set by the author of a runtime, cover what the
// protocol does not define. Facts in comments were observed with Gemini CLI
// 0.61.0.
//
// # Turns
//
// A second prompt during a turn would cancel the first, so a turn cannot be steered.
// The agent answers an interrupt by ending the turn and its tools; the engine
// answers open approval requests as cancelled, as the protocol requires.
//
// # Resuming
//
// An agent that loads a session repeats its history, some of it after its answer.
// The engine drops messages until the agent answers a request without sending
// anything before the answer, so that a turn never begins with the text of
// another.
package acp
