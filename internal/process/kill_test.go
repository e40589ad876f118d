package process

import (
	"testing"

	"github.com/busdk/bus-agent/internal/testwait"
)

// What is alive of the runs is killed, however deaf it is, and nothing else.
func TestKillRuns(t *testing.T) {
	t.Parallel()
	innocent := newBystanders(t, t.TempDir())
	see := newWitness(t)
	deaf := restlessAgents["deaf to SIGTERM"].descend(see.dir)
	p, err := Start(soon(t), agent(t, append(deaf, step{Do: "ignore"}, step{Do: "await", Text: see.dir + "/id"}, step{Do: "hang"})...))
	if err != nil {
		t.Fatal(err)
	}
	reported(t, see.dir+"/id")
	var mine registry
	mine.begin()
	mine.add(&p.run)
	if !testwait.Poll(func() bool { return !mine.kill() }) {
		t.Fatal("it does not end")
	}
	if exit, err := p.Wait(); exit.Signal != "SIGKILL" || exit.Stopped || err != nil {
		t.Errorf("got %+v, %v", exit, err)
	}
	see.check(t)
	innocent.check(t)
}
