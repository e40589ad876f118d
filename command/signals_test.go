package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

// bound is how long after the signal the program may last.
const bound = 8 * time.Second

// A timed watchdog runs by a clock of the test's.
type timed struct {
	*watchdog
	now   time.Duration
	later map[time.Duration]func()
	exits []int
	kills int
}

func newTimed(stderr io.Writer) *timed {
	t := &timed{later: map[time.Duration]func(){}}
	t.watchdog = &watchdog{
		exit:   func(code int) { t.exits = append(t.exits, code) },
		kill:   func() { t.kills++ },
		after:  func(d time.Duration, f func()) { t.later[t.now+d] = f },
		stderr: stderr,

		unfinished: func() ([]int, []string) { return []int{12}, []string{"/work/.codex/bus/0", "/tmp/bus-agent-1"} },
	}
	return t
}

// pass lets time pass, a millisecond at a time.
func (t *timed) pass(until time.Duration) {
	for ; t.now <= until; t.now += time.Millisecond {
		if f := t.later[t.now]; f != nil {
			f()
		}
	}
}

// One signal is enough: what does not end by itself is ended within the bound,
// with time to spare for the message, whichever signal it is and whatever follows.
func TestOneSignalEndsTheProgram(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			w := newTimed(&said)
			ctx, end := w.begin(context.Background())
			w.signaled(sig)
			if err := context.Cause(ctx); err == nil || err.Error() != sig.String() {
				t.Errorf("the work ends with %v", err)
			}
			w.pass(time.Second)
			w.signaled(syscall.SIGTERM) // changes nothing
			end()                       // the work is over, but not what comes after it
			w.pass(process.KillAfter - 1)
			if w.kills != 0 {
				t.Error("agents are killed before their grace is over")
			}
			w.pass(bound - lastWord)
			if w.kills != 1 || len(w.exits) != 1 || w.exits[0] != 1 {
				t.Errorf("killed %d times, exits %v; want once, and exit code 1", w.kills, w.exits)
			}
			if !strings.Contains(said.String(), "bus-agent: stopped: "+sig.String()) {
				t.Errorf("says %q", said.String())
			}
			for _, want := range []string{"process 12 ", "/work/.codex/bus/0, /tmp/bus-agent-1;", "bus-agent doctor --sweep"} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("does not name %q: %q", want, said.String())
				}
			}
		})
	}
}

// A standard error that blocks does not delay the exit of the program.
func TestBlockedStderrDoesNotDelayTheExit(t *testing.T) {
	t.Parallel()
	r, stuck := io.Pipe()
	defer r.Close()
	w := newTimed(stuck)
	w.begin(context.Background())
	w.signaled(os.Interrupt)
	w.pass(bound)
	if len(w.exits) != 1 {
		t.Error("the program does not end")
	}
}

// Work that ends by itself is not ended.
func TestWorkThatEnds(t *testing.T) {
	t.Parallel()
	w := newTimed(io.Discard)
	ctx, end := w.begin(context.Background())
	end()
	w.pass(bound)
	if len(w.exits) != 0 || w.kills != 0 || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("exits %v, killed %d times, cause %v", w.exits, w.kills, context.Cause(ctx))
	}
}
