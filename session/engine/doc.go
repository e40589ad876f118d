// Package engine is for authors of session engines, as database/sql/driver is for
// authors of drivers. Most code should use package session.
//
// An [Engine] speaks one protocol with one agent over a [Transport] that is given to
// it, and reports what the agent says to a [Sink]. It starts nothing: package runner
// starts the agent, and package session calls the engine. [LineWriter], [Head],
// [Questions] and [Start.MayEdit] are what several engines need.
//
// An [OpenTerminal] holds an interactive CLI in a terminal, which a [Terminal]
// describes.
//
// Package sessiontest tests engines.
package engine
