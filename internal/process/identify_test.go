package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testwait"
)

func TestLifeOfAProcess(t *testing.T) {
	t.Parallel()
	child := exec.Command("/bin/cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := Identify(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if LifeOf(identity) != Alive || LifeOf(Self()) != Alive || !SameBoot(identity) {
		t.Errorf("%s and %s are %d and %d", identity, Self(), LifeOf(identity), LifeOf(Self()))
	}
	// The PID was given to another process since, or it is not of here.
	parts := strings.Split(identity, ":")
	for i, want := range map[int]Life{0: Unknown, 1: Unknown, 3: Dead} {
		other := append([]string(nil), parts...)
		other[i] += "1"
		if got := LifeOf(strings.Join(other, ":")); got != want {
			t.Errorf("%q: %d, want %d", other, got, want)
		}
	}
	input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := LifeOf(identity); got != Dead {
		t.Errorf("a process that has ended is %d", got)
	}
	if _, err := Identify(child.Process.Pid); err == nil {
		t.Error("a process that is gone is identified")
	}
	if LifeOf("") != Unknown || LifeOf("nonsense") != Unknown || SameBoot("") {
		t.Error("nonsense identifies a process")
	}
	if self, err := Identify(os.Getpid()); err != nil || self != Self() {
		t.Errorf("%s, %v, want %s", self, err, Self())
	}
}

// A child that has ended is identified like one that runs, until it is reaped: an
// agent can be quicker than what records it.
func TestIdentifyChildThatHasEnded(t *testing.T) {
	t.Parallel()
	child := exec.Command("/bin/cat")
	input, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := Identify(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	input.Close()
	if !testwait.Poll(func() bool { _, err := Identify(child.Process.Pid); return err != nil }) {
		t.Fatal("it does not end")
	}
	if got := identifyChild(child.Process.Pid); got != want {
		t.Errorf("identified as %q, want %q", got, want)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := identifyChild(child.Process.Pid); got == want {
		t.Errorf("identified as %q after it was reaped", got)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	child := exec.Command("/bin/cat")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := Identify(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(identity, ":")
	for _, i := range []int{0, 1, 3} { // another one that has or had the PID
		other := append([]string(nil), parts...)
		other[i] += "1"
		if Terminate(strings.Join(other, ":")) {
			t.Errorf("%q is signaled", other)
		}
	}
	if LifeOf(identity) != Alive || !Terminate(identity) {
		t.Error("it is not there")
	}
	if err := child.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Error(err)
	}
	if Terminate(identity) || Terminate("") {
		t.Error("one that is gone is signaled")
	}
}
