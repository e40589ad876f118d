package runner

import "github.com/busdk/bus-agent/internal/process"

// AdoptOrphans makes this process, instead of init, the parent of processes of its
// agents that lose theirs, so that the end of a run finds and reaps all of them. Other
// children of this process are left alone. With alone, the program declares that it
// starts only agents; then an agent's process that hides its origin is ended too.
//
// A main program calls it once, before it starts anything; a library does not. On
// systems other than Linux it returns errors.ErrUnsupported.
func AdoptOrphans(alone bool) error { return process.BecomeSubreaper(alone) }
