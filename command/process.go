package command

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/runner"
)

// stream returns f, which has descriptor fd, under another one. Writing to a
// closed pipe would end the program at once under the descriptors 1 and 2;
// under any other it is an error like every other.
//
// A pipe and a terminal are opened anew where the system lets us, without waiting
// for their reader, so that writing to them takes deadlines. The caller's own
// descriptor, which other programs share, stays as it is.
func stream(f *os.File, fd int) *os.File {
	if info, err := f.Stat(); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0 {
		const flags = unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
		if other, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags, 0); err == nil {
			return os.NewFile(uintptr(other), f.Name())
		}
	}
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return f
	}
	return os.NewFile(uintptr(other), f.Name())
}

// minFiles is how many open files a run needs: its pipes, records and locks, and the
// directories held while trees are removed.
const minFiles = 128

// enoughFiles reports whether the process may open minFiles files, and warns the
// user if not. With fewer a run would leave what it cannot open to remove, and with
// very few the Go runtime ends the program with a stack trace.
func enoughFiles() bool {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= minFiles {
		return true
	}
	line := fmt.Sprintf("bus-agent: at most %d open files are allowed, %d are needed; raise the limit, such as by ulimit -n 1024\n", limit.Cur, minFiles)
	_, _ = unix.Write(2, []byte(line)) // without the poller, which needs files itself
	return false
}

// softMemory is what the program tries to get by with, in bytes. An agent's line
// of up to 16 MiB is held as it came, unescaped and as it is printed, which leaves
// as much for the garbage collector to find in time; everything else needs less.
const softMemory = 72 << 20

// beginWork takes charge of signals, orphans and memory for the time an agent runs.
func (w *watchdog) beginWork(parent context.Context) (context.Context, func()) {
	// Orphans of an agent become ours, so that none escapes. Where that is not
	// possible the sweep after a run still finds all but the most evasive.
	_ = runner.AdoptOrphans(true)

	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
	return w.begin(parent)
}
