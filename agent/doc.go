// Package agent is the vocabulary every other package of bus-agent speaks: what
// a caller asks for ([Request]) and where a run reports to ([Output]), what a
// runtime turns that into ([Command]), what an agent reports while it works
// ([Event]) and what a run came to ([Result], [Error]).
//
// It imports the standard library and jsonline alone, starts nothing and reads no
// environment. Application code builds a Request and hands it to package
// runner; authors of runtimes turn each registry.Invocation into a Command and lines
// into Events.
package agent
