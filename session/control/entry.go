package control

import (
	"cmp"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
)

// An Entry is the record of a session in the state folder, whichever process holds
// the session. It does not contain secrets: neither the environment nor messages
// are part of it.
type Entry struct {
	// SessionID is the canonical ID, GT_SESSION_ID; NativeID the one by which the
	// runtime knows the session, empty until it is known. Name is the user's name
	// for the session; it may be empty.
	SessionID string `json:"session_id"`
	NativeID  string `json:"native_id"`
	Name      string `json:"name,omitempty"`

	// Settings are those of the last start of the session, with the resolved
	// runtime token, absolute workdir and mode. NativeModel is the runtime's name
	// of the model, empty until known.
	Settings
	NativeModel string `json:"native_model,omitempty"`
	// RunID is the ID of its last record, empty if it was never recorded.
	RunID string `json:"run_id,omitempty"`
	// TmuxSocket is the socket of the tmux server of the last start, in
	// session.ModeTmux.
	TmuxSocket string `json:"tmux_socket,omitempty"`

	Role    string `json:"role"`
	Rig     string `json:"rig"`
	Polecat string `json:"polecat"`
	Actor   string `json:"actor"`

	// Fresh reports that no message was sent to the agent, so that there is no
	// conversation to resume.
	Fresh bool `json:"fresh,omitempty"`

	State  session.State `json:"state"`
	Reason string        `json:"reason"` // why it ended

	// Folder is the name of the folder, next to the entry, with the log and the
	// socket of a served session. It is empty if only the process that holds the
	// session can reach it.
	Folder string `json:"folder,omitempty"`

	// Turns is the number of the last turn since the last start.
	Turns int `json:"turns"`

	PID int `json:"pid"` // of the agent, the last one; 0 before it has started
	// Process and Owner identify the agent's process and the one that holds the
	// session, with the PID OwnerPID, among all processes of any time. Host is the
	// name of their machine.
	Process  string `json:"process"`
	Owner    string `json:"owner"`
	OwnerPID int    `json:"owner_pid"`
	// OwnerEnds reports that the process that holds the session ends with
	// it.
	OwnerEnds bool   `json:"owner_ends,omitempty"`
	Host      string `json:"host"`

	// Created is the first time at which the runtime's session is known to have
	// existed. Started and Ready are when the agent was last started and when it
	// could then take messages.
	Created time.Time `json:"created,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ready   time.Time `json:"ready,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	version int  // of its file
	locked  bool // a process that cannot be seen from here holds the lock of the folder
	found   bool // the crash is not in its file yet
}

// Running reports whether the agent's process is alive; another process with the
// same PID does not count. It returns an error if that is unknown here, because
// the process belongs to another machine or container.
func (e Entry) Running() (bool, error) { return e.alive(e.Process) }

func (e Entry) alive(identity string) (bool, error) {
	if e.State.Ended() && e.State != session.StateCrashed || identity == "" {
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

// settle shows the entry of a session whose processes have died as crashed, and of
// one that only another machine can know as elsewhere.
func (e *Entry) settle() {
	_, unknown := e.alive(e.Owner)
	switch {
	case e.State.Ended():
	case e.Folder == "" && e.dead(e.Process):
		e.crashed("its process has died")
	case e.dead(e.Owner) || unknown != nil && e.Folder != "" && !e.locked:
		e.crashed("the process that held it has died")
	case unknown != nil:
		e.State = session.StateElsewhere
	}
}

// dead reports whether the process with an identity is dead for sure.
func (e Entry) dead(identity string) bool {
	alive, err := e.alive(identity)
	return identity != "" && err == nil && !alive
}

func (e *Entry) crashed(reason string) {
	e.State, e.found = session.StateCrashed, true
	if e.Reason == "" {
		e.Reason = reason
	}
}

// resumable reports whether the session, which has ended, has a conversation to resume. A
// runtime may keep one of a session that was stopped even if it is empty.
func (e Entry) resumable() bool {
	return e.NativeID != "" && !(e.Fresh && e.State == session.StateCrashed)
}

// inUse returns why the session cannot be resumed.
func (e Entry) inUse() error {
	running, err := e.Running()
	if err == nil && running {
		return fmt.Errorf("%w: %s, process %d", ErrRunning, e.SessionID, e.PID)
	}
	if err == nil && !e.State.Ended() {
		var held bool
		if held, err = e.alive(e.Owner); held {
			return fmt.Errorf("%w: %s", ErrRunning, e.SessionID)
		}
	}
	if err != nil && !e.State.Ended() {
		return fmt.Errorf("%w, as far as is known: %w", ErrRunning, err)
	}
	return nil
}

// Served reports whether a [Client] can call the process that holds the
// session.
func (e Entry) Served() bool {
	return e.Folder != "" && !e.State.Ended() && e.State != session.StateElsewhere
}

// Label returns the name of the session or, if it has none, its ID.
func (e Entry) Label() string { return cmp.Or(e.Name, e.SessionID) }

// Handle returns the handle of the session.
func (e Entry) Handle() SessionHandle {
	return SessionHandle{Runtime: e.Runtime, SessionID: e.SessionID, Workdir: e.Workdir, PID: e.PID, StartedAt: e.Started, ReadyAt: e.Ready}
}
