package process

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes this process the parent of descendants that lose theirs,
// instead of init, and keeps it so: their end is noticed and they are reaped,
// where init may be a program that never does.
//
// Only what carries the mark of a run is reaped or ended; a child that another
// part of the program started, and what such a child leaves behind, is not touched,
// and so stays a zombie if nobody waits for it. With alone the program says that it
// starts nothing but runs. If it has no children yet, all that it adopts is then
// of a run, with or without a mark.
//
// A main program calls it once, before it starts anything; a library does not. On
// systems other than Linux it returns errors.ErrUnsupported.
func BecomeSubreaper(alone bool) error {
	err := becomeSubreaper()
	if err == nil && alone && !hasChildren() {
		adoptsAll.Store(true)
	}
	return err
}

// adoptsAll says that every child of this process is of a run.
var adoptsAll atomic.Bool

func hasChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err != unix.ECHILD
		}
	}
}

// adopted reports whether a child of this process that is no leader was adopted
// from r for sure: nothing else than this run can have left it.
func (r *run) adopted() bool { return adoptsAll.Load() && runs.isOnly(r) }

var becomeSubreaper = sync.OnceValue(func() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	isSubreaper.Store(true)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			reapOrphans()
			time.Sleep(reapPause)
		}
	}()
	return nil
})

// reapPause is the least time between two looks for zombies.
const reapPause = time.Second

// reapOrphans reaps the dead members of runs that this process has adopted, so
// that they do not pile up during a long run.
func reapOrphans() {
	from, ok := runs.oldest()
	if !ok {
		return
	}
	table, err := readTable(from, nil)
	if err != nil && err != errUnsettled {
		return
	}
	for _, p := range table {
		if p.dead && p.parent == self().pid && (runs.marked(p.mark) && p.session != self().session || adoptsAll.Load() && runs.noneBegins()) {
			reapAdopted(p)
		}
	}
}
