package process

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	actions["hasty"] = hasty
}

// hasty writes up to N bytes while there is room and continues, as a Node program does
// that exits without waiting for its output.
func hasty(s step) {
	check(unix.SetNonblock(1, true))
	for left := []byte(strings.Repeat("x", s.N)); len(left) > 0; {
		n, err := unix.Write(1, left)
		if err != nil {
			os.Exit(0)
		}
		left = left[n:]
	}
}

// Output is whole although the process did not wait for a slow consumer.
func TestHastyProcessLosesNothing(t *testing.T) {
	t.Parallel()
	const size = 900 << 10
	s := agent(t, step{Do: "hasty", N: size})
	var p *Process
	started := make(chan struct{})
	got := 0
	s.Stdout = writerFunc(func(b []byte) (int, error) {
		<-started
		<-p.exited
		got += len(b)
		return len(b), nil
	})
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	close(started)
	if exit, err := p.Wait(); err != nil || exit != (Exit{}) {
		t.Errorf("got %+v, %v", exit, err)
	}
	if got != size {
		t.Errorf("%d of %d bytes arrived", got, size)
	}
}
