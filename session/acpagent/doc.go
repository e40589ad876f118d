// Package acpagent serves sessions as an agent of the Agent Client Protocol (ACP),
// version 1: JSON-RPC over two streams, one message a line. Editors and other clients of
// the protocol can so use every runtime.
//
// A session of the client is one of package control, with the same ID: it is listed,
// watched and recorded like every other, and the client can load it again after a crash.
//
// # Settings
//
// The client chooses the access, the model and the effort as options of the session. The
// access is also its mode. A runtime that cannot change a setting while it runs is
// stopped and resumed with the new one, between two turns.
//
// # Limits
//
// A prompt during a turn is added to the turn if the runtime takes that, and refused
// otherwise. Images and MCP servers of the client are offered if the runtime takes them.
// Audio is refused. Files and terminals of the client are not used.
package acpagent
