package session

import (
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// State is what a session is doing.
type State string

// The states of a session.
const (
	StateStarting State = "starting" // the agent does not take messages yet
	StateReady    State = "ready"    // it waits for a message
	StateRunning  State = "running"  // a turn is running
	StateWaiting  State = "waiting"  // a turn waits for the answer to an approval request
	StateStopping State = "stopping" // it takes no more messages
	StateStopped  State = "stopped"  // it has ended, and can be resumed
	StateCrashed  State = "crashed"  // its agent, or the process that held it, has died

	// These are seen by other processes alone: see package control.

	StateElsewhere   State = "elsewhere"   // held on another machine or in another container
	StateUnreachable State = "unreachable" // the process that holds it does not answer
)

// Ended reports whether a session in this state is over.
func (s State) Ended() bool { return s == StateStopped || s == StateCrashed }

// States returns all states.
func States() []State {
	return []State{
		StateStarting, StateReady, StateRunning, StateWaiting, StateStopping, StateStopped, StateCrashed,
		StateElsewhere, StateUnreachable,
	}
}

// ParseState returns the state with a name.
func ParseState(name string) (State, error) {
	if s := State(name); slices.Contains(States(), s) {
		return s, nil
	}
	var names []string
	for _, s := range States() {
		names = append(names, string(s))
	}
	return "", agent.Usagef("%q is not a state of a session; the states are %s", name, strings.Join(names, ", "))
}
