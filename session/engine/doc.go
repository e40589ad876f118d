// Package engine is for authors of session engines, as database/sql/driver is for
// authors of drivers. Most code should use package session.
//
// An [Engine] speaks one protocol with one agent over the Transport it receives, and
// reports what the agent sends to a Sink. It starts nothing: package runner starts
// the agent, and package session calls the engine. [LineWriter], [Head], [Approvals]
// and [Start.MayEdit] are helpers for engines.
//
// An [OpenTerminal] holds an interactive CLI in a terminal, which a [Terminal]
// describes.
//
// Package sessiontest tests engines.
package engine
