package control

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// AttachArgs returns the arguments with which the program tmux shows the terminal of a
// session in session.ModeTmux. With write, what the user types reaches the agent;
// otherwise it only detaches.
func (c *Client) AttachArgs(e Entry, write bool) ([]string, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	store.settle(&e)
	switch {
	case e.State.Ended() || e.State == session.StateElsewhere:
		return nil, notServed(e)
	case e.Mode != session.ModeTmux:
		return nil, agent.Usagef("session %s has no terminal, because it was not started with --mode tmux; \"session watch %s --follow\" shows it", e.Label(), e.Label())
	case e.TmuxSocket == "":
		return nil, &agent.Error{Kind: agent.ErrAgent, Err: &because{"session " + e.Label() + " is still starting", ErrNotRunning}}
	}
	args := []string{"-u", "-N", "-S", e.TmuxSocket, "attach-session"}
	if !write {
		args = append(args, "-r")
	}
	return args, nil
}
