package session

// State is what a session is doing.
type State string

// The states of a session.
const (
	StateStarting State = "starting" // the agent does not take messages yet
	StateReady    State = "ready"    // it waits for a message
	StateRunning  State = "running"  // a turn is running
	StateWaiting  State = "waiting"  // a turn waits for the answer to an approval request or a question
	StateStopping State = "stopping" // it takes no more messages
	StateStopped  State = "stopped"  // it has ended, and can be resumed
	StateCrashed  State = "crashed"  // its agent, or the process that held it, has died

	// These are seen by other processes alone: see package control.

	StateElsewhere   State = "elsewhere"   // held on another machine or in another container
	StateUnreachable State = "unreachable" // the process that holds it does not answer
	StateDamaged     State = "damaged"     // it is running, but its entry is damaged
)

// Ended reports whether a session in this state is over.
func (s State) Ended() bool { return s == StateStopped || s == StateCrashed }
