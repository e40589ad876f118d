// Package agent defines the types that the other packages of bus-agent share: what a
// caller requests ([Request]) and where a run reports ([Output]), the command of a
// runtime ([Command]), what an agent reports while it works ([Event]), and how a run
// ended ([Result], [Error]).
//
// It imports only the standard library and jsonline, starts nothing and reads no
// environment. Application code builds a Request for package runner; authors of
// runtimes turn a registry.Invocation into a Command and lines into Events.
package agent
