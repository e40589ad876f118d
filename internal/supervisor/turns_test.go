package supervisor

import (
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// A session is ready once the end of its turns is written, so that whoever waited
// for it finds that in the log, and not between two turns.
func TestReadyWhenTurnsAreWritten(t *testing.T) {
	t.Parallel()
	log, err := openLog(t.TempDir(), logSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.finish)
	held, err := openChoosy(t.Context(), session.Options{}, Notes{Started: func(agent.Start) {}, Warn: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Stop(t.Context(), "") })
	c := &conversation{log: log}
	c.opened(held)
	if !c.reached(session.StateReady) {
		t.Error("it is not ready at first")
	}
	sent, err := held.Send(session.Message{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	<-sent.Done()
	over := &turn{number: 1, turn: sent}
	c.turns = []*turn{over}
	if c.reached(session.StateReady) {
		t.Error("it is ready before the end of the turn is written")
	}
	c.await(over)
	if last, _, _ := log.state(); last != 1 || !c.reached(session.StateReady) {
		t.Errorf("%d records; ready: %t", last, c.reached(session.StateReady))
	}

	_, changed, _ := log.state()
	if _, _, err := c.steer(t.Context(), "no"); err == nil {
		t.Error("the message was taken")
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told that no message waits any more")
	}
	if !c.reached(session.StateReady) {
		t.Error("it is not ready after a message was refused")
	}
}
