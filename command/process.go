package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/process"
)

// stream returns f, which has descriptor fd, under another one. Writing to a
// closed pipe would end the program at once under the descriptors 1 and 2;
// under any other it is an error like every other.
func stream(f *os.File, fd int) *os.File {
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return f
	}
	return os.NewFile(uintptr(other), f.Name())
}

// forcedAfter is when a further signal ends the program at once. An orderly
// stop is over well before: an agent has five seconds to end by itself, its
// tools one more.
const forcedAfter = 10 * time.Second

// softMemory is what the program tries to get by with, in bytes. An agent's line
// of up to 16 MiB is held as it came, unescaped and as it is printed, which leaves
// as much for the garbage collector to find in time; everything else needs less.
const softMemory = 72 << 20

// begin takes charge of signals, orphans and memory for the time an agent runs.
//
// SIGINT, SIGTERM and SIGHUP end the context. The signals that follow do not
// cut the stop short, since that would leave the agent's processes behind;
// after forcedAfter they have their usual effect.
func begin(parent context.Context) (context.Context, func()) {
	// Orphans of an agent become ours, so that none escapes. Where that is not
	// possible the sweep after a run still finds all but the most evasive.
	_ = process.BecomeSubreaper(true)

	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}

	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		// What the parent ignores stays ignored: nohup, background jobs.
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		cancel(errors.New((<-signals).String()))
		time.Sleep(forcedAfter)
		signal.Stop(signals)
	}()
	return ctx, func() { cancel(nil) }
}
