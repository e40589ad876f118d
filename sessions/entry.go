package sessions

import (
	"errors"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
)

// A State is what a session is doing, as far as its entry tells.
type State string

// The states of an entry.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"   // it waits for a message
	StateRunning  State = "running" // a turn is running
	StateWaiting  State = "waiting" // for an answer to a question
	StateStopped  State = "stopped" // it has ended, and can be resumed
	StateCrashed  State = "crashed" // its process died, or whoever held it
)

// Ended reports whether a session in this state is over.
func (s State) Ended() bool { return s == StateStopped || s == StateCrashed }

// States returns all states.
func States() []State {
	return []State{StateStarting, StateReady, StateRunning, StateWaiting, StateStopped, StateCrashed}
}

// ParseState returns the state that word names.
func ParseState(word string) (State, error) {
	for _, s := range States() {
		if word == string(s) {
			return s, nil
		}
	}
	return "", agent.Usagef("%q is no state of a session; it is starting, ready, running, waiting, stopped or crashed", word)
}

// A Mode is how an agent is run in a session.
type Mode = session.Mode

// The modes.
const (
	ModeMinimal = session.ModeMinimal // by its protocol; the default
	ModeTmux    = session.ModeTmux    // in a terminal of tmux
)

// An Entry is what the state folder holds of a session. It has no secrets: the
// environment and what was said are no part of it.
type Entry struct {
	// SessionID is the canonical ID, GT_SESSION_ID; NativeID the one by which the
	// runtime knows the session, empty while nobody knows.
	SessionID string `json:"session_id"`
	NativeID  string `json:"native_id"`
	Runtime   string `json:"runtime"` // token
	WorkDir   string `json:"workdir"`
	Mode      Mode   `json:"mode"`

	// AccountDir is the folder of the account, empty for the user's own.
	AccountDir string       `json:"account_dir"`
	Model      string       `json:"model"`
	Access     agent.Access `json:"access"`

	Role    string `json:"role"`
	Rig     string `json:"rig"`
	Polecat string `json:"polecat"`
	Actor   string `json:"actor"`
	Bead    string `json:"bead"`

	State  State  `json:"state"`
	Reason string `json:"reason"` // why it ended

	PID int `json:"pid"` // of the agent, the last one; 0 before it has started
	// Process and Owner identify the agent's process and the one that holds the
	// session; see process.Identify. Host is the name of their machine.
	Process string `json:"process"`
	Owner   string `json:"owner"`
	Host    string `json:"host"`

	// Created is when the runtime's session is known to have existed first,
	// Started and Ready when the agent was started last and could take messages.
	Created time.Time `json:"created,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ready   time.Time `json:"ready,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Errors of entries and handles.
var (
	// ErrUnknown: there is no such session.
	ErrUnknown = errors.New("no such session")
	// ErrRunning: the session runs.
	ErrRunning = errors.New("the session is running")
	// ErrNotRunning: the session has ended.
	ErrNotRunning = errors.New("the session is not running")
	// ErrElsewhere: another process holds the session.
	ErrElsewhere = errors.New("another process holds the session")
)

// Running reports whether the agent's process is alive: that process, not another
// one with its PID. The error says that this cannot be told here, because it is
// one of another machine or container.
func (e Entry) Running() (bool, error) { return e.alive(e.Process) }

// Held reports whether the process is alive that holds the session.
func (e Entry) Held() (bool, error) { return e.alive(e.Owner) }

func (e Entry) alive(identity string) (bool, error) {
	if e.State.Ended() && e.State != StateCrashed || identity == "" {
		return false, nil
	}
	switch process.LifeOf(identity) {
	case process.Alive:
		return true, nil
	case process.Dead:
		return false, nil
	}
	if e.Host == hostName() && !process.SameBoot(identity) {
		return false, nil // this machine was started since
	}
	return false, fmt.Errorf("session %s is of another machine or container (%s)", e.SessionID, e.Host)
}

// settle shows the entry of a session whose processes have died as crashed.
func (e *Entry) settle() {
	switch {
	case e.State.Ended():
	case e.dead(e.Process):
		e.crashed("its process has died")
	case e.dead(e.Owner):
		e.crashed("the process that held it has died")
	}
}

// dead reports whether the process with an identity is dead for sure.
func (e Entry) dead(identity string) bool {
	alive, err := e.alive(identity)
	return identity != "" && err == nil && !alive
}

func (e *Entry) crashed(reason string) {
	e.State = StateCrashed
	if e.Reason == "" {
		e.Reason = reason
	}
}

// inUse returns why nobody else may go on with the session.
func (e Entry) inUse() error {
	running, err := e.Running()
	if err == nil && running {
		return fmt.Errorf("%w: %s, process %d", ErrRunning, e.SessionID, e.PID)
	}
	if err == nil && !e.State.Ended() {
		var held bool
		if held, err = e.Held(); held {
			return fmt.Errorf("%w: %s", ErrRunning, e.SessionID)
		}
	}
	if err != nil && !e.State.Ended() {
		return fmt.Errorf("%w, as far as is known: %w", ErrRunning, err)
	}
	return nil
}

// Handle returns the handle of the session.
func (e Entry) Handle() SessionHandle {
	return SessionHandle{Runtime: e.Runtime, SessionID: e.SessionID, WorkDir: e.WorkDir, PID: e.PID, StartedAt: e.Started, ReadyAt: e.Ready}
}
