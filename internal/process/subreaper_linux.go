package process

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
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
// part of the program started, and what such a child leaves behind, is not touched, and
// stays a zombie if the program does not wait for it. With alone the program declares
// that it starts only runs. If it has no children yet, every process that it adopts is
// then of a run, with or without a mark.
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

// adopted reports whether a child of this process that is not a leader was certainly
// adopted from r: no other run can have left it.
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
			time.Sleep(reapOrphans())
		}
	}()
	return nil
})

// Times between two looks for zombies: where the kernel lists children, and where
// the table of processes has to be read.
const (
	reapPause  = 10 * time.Millisecond
	tablePause = time.Second
)

// reapOrphans reaps the dead members of runs that this process has adopted, so
// that they do not pile up: those of an agent that forks without end would fill the
// system's table of processes. It returns the least time to the next look.
func reapOrphans() time.Duration {
	if adoptsAll.Load() && reapChildren() {
		return reapPause
	}
	reapMembers()
	return tablePause
}

// reapChildren reaps every child that has ended and is not a leader. It reports
// false where the kernel does not list children, which it does much faster than
// processes. Only for a process whose children are all of runs.
func reapChildren() bool {
	list, ok := children()
	for _, pid := range list {
		runs.reapAdopted(pid)
	}
	return ok
}

// children returns the children of the first thread, which adopts; false where the
// kernel does not list them.
func children() (pids []int, ok bool) {
	if !procUsable() {
		return nil, false
	}
	list, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(self().pid) + "/children")
	for pid := range bytes.FieldsSeq(list) {
		pids = append(pids, number(pid))
	}
	return pids, err == nil
}

// killAdopted kills and reaps what this process has adopted of r, and adopts by
// that, until nothing of it is left or the hunt is over. To list children and signal
// them takes less time than to fork, so not even a process that forks and exits for
// ever escapes, without mark and environment.
func (r *run) killAdopted(h *hunt) { killAdopted(h, r.from.born, r.adopted) }

// killAdopted kills what was adopted and born since, while it is certainly of runs.
func killAdopted(h *hunt, since uint64, certain func() bool) {
	for certain() && !h.over() {
		list, _ := children()
		before := h.found
		found := false // also what has ended by now may have left others
		for _, pid := range list {
			born, ended := runs.killAdopted(pid, since)
			if born != 0 {
				h.find(pid, born)
				h.killed[pid] = born
			}
			found = found || ended || born != 0
		}
		if !found {
			return
		}
		if h.found == before {
			time.Sleep(100 * time.Microsecond) // it needs time to die
		}
	}
}

// killLeft kills what this process has adopted of runs that have all ended, and returns
// how many that were. A run that ends while another one lives cannot kill its own: it may
// be of the other one.
func killLeft() (killed int) {
	since, over := runs.left()
	if !over || !adoptsAll.Load() {
		return 0
	}
	h := newHunt(sweepLimit, chaseLimit)
	killAdopted(h, since, func() bool { _, over := runs.left(); return over })
	runs.settle()
	return len(h.killed)
}

// left returns since when runs may have left processes; false while there is a run.
func (g *registry) left() (since uint64, over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since, g.since != 0 && len(g.leaders) == 0 && g.begun == 0
}

// settle notes that nothing is left of runs that have ended.
func (g *registry) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.leaders) == 0 && g.begun == 0 {
		g.since = 0
	}
}

// reapMembers reaps those that the table of processes shows.
func reapMembers() {
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
