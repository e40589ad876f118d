// Package sessiontest plays the agent in tests of session engines: a scripted
// peer behind an engine.Transport, which starts no process.
//
// A script is a list of [Step]: what the peer waits for and what it then sends.
// [Transcript] reads one from the record of a real conversation. An engine
// chooses new request IDs each time; the peer answers with the IDs that the
// client really used.
//
//	peer := sessiontest.Start(steps)
//	s, err := session.Open(ctx, "mine", e, peer, peer.Transport(), engine.Start{}, session.Options{})
//
// [Faults] lists ways in which agents go wrong. Each changes a script at one of
// its steps. [Visit.Faults] tests an engine with every fault at every step.
//
// [Replay] plays a whole transcript, [Log] and [Golden] compare the outcome, and
// [Leaks] finds leaked goroutines.
//
// Peers are made of pipes and channels, so they work inside a bubble of package
// testing/synctest.
package sessiontest
