package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/unix"
)

// lastWord is the time for the message of a program that does not end by itself.
const lastWord = 200 * time.Millisecond

// A watchdog sees to it that one signal ends the program.
//
// While there is nothing to take back, a signal ends it at once, as it does every
// program. Once work has begun, the signal ends the context of the work, and what
// does not end by itself then is ended: the agents with all they have started after
// process.KillAfter, the program after process.ExitAfter, whatever it waits for.
// Further signals change nothing.
type watchdog struct {
	exit func(code int)
	kill func() // ends what was started
	// after calls f when d has passed.
	after  func(d time.Duration, f func())
	stderr io.Writer
	// unfinished returns what was not ended and removed.
	unfinished func() (agents []int, folders []string)

	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the work; nil while there is none
	caught bool
}

// newWatchdog returns the watchdog of this process. From now on SIGQUIT does what
// SIGINT does.
func newWatchdog(stderr io.Writer) *watchdog {
	w := &watchdog{
		exit:   os.Exit,
		kill:   func() { process.KillRuns(process.ExitAfter - process.KillAfter - lastWord) },
		after:  func(d time.Duration, f func()) { time.AfterFunc(d, f) },
		stderr: stderr,

		unfinished: process.Unfinished,
	}
	w.catch(syscall.SIGQUIT)
	return w
}

// catch takes charge of signals. What the parent ignores stays ignored: nohup,
// background jobs.
func (w *watchdog) catch(signals ...os.Signal) {
	caught := make(chan os.Signal, 1)
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	go func() {
		for sig := range caught {
			w.signaled(sig)
		}
	}()
}

// begin is the beginning of work that takes time; the function it returns is
// called at its end.
func (w *watchdog) begin(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	w.catch(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // and SIGQUIT, which is caught
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.caught { // else what is still to come is bounded by the first signal
			w.cancel = nil
		}
		cancel(nil)
	}
}

// signaled begins the end of the program.
func (w *watchdog) signaled(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.caught:
	case w.cancel == nil:
		// The program ends as one that has not asked for signals does.
		deadly := syscall.SIGINT
		if s, ok := sig.(syscall.Signal); ok && s != syscall.SIGQUIT {
			deadly = s
		}
		signal.Reset(deadly)
		_ = unix.Kill(os.Getpid(), deadly)
		w.after(lastWord, func() { w.exit(1) }) // where that is ignored
	default:
		w.caught = true
		w.cancel(errors.New(sig.String()))
		w.after(process.KillAfter, w.kill)
		w.after(process.ExitAfter, func() { w.give(sig) })
	}
}

// give ends a program that does not end by itself.
func (w *watchdog) give(sig os.Signal) {
	// To look is quick, but nothing may keep the program from ending, and the reader
	// of the message may not read it.
	said := make(chan struct{})
	go func() {
		defer close(said)
		fmt.Fprintf(w.stderr, "bus-agent: stopped: %v; it did not end within %v and was ended: %s\n", sig, process.ExitAfter, leftBehind(w.unfinished()))
	}()
	select {
	case <-said:
	case <-time.After(lastWord):
	}
	w.exit(1)
}

// leftBehind names what is left behind, and the command that cleans up.
func leftBehind(agents []int, folders []string) string {
	const most = 10
	var names []string
	for _, pid := range agents {
		names = append(names, fmt.Sprintf("process %d and what it has started", pid))
	}
	for _, folder := range folders {
		names = append(names, formatters.SanitizeString(folder))
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) == 0 {
		return `run "bus-agent doctor --sweep" to end and remove what is left of it`
	}
	return "left behind: " + strings.Join(names, ", ") + `; run "bus-agent doctor --sweep" in the same directory to end and remove it`
}
