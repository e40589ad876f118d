package process

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.ReplaceAll(strings.TrimSpace(string(id)), "-", "")
}

func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

func ownStart() uint64 {
	p, _ := readProcess(os.Getpid())
	return p.born
}

func ownSession() int {
	session, _ := unix.Getsid(0)
	return session
}

// A mark is the soft limit of RLIMIT_LOCKS. The kernel has not looked at that
// limit since version 2.4, but it still hands it down at every fork, keeps it
// over exec and setsid, and shows it without reading the environment, also of
// a zombie. The hard limit is left alone, so that a program may still set it.
const markResource = unix.RLIMIT_LOCKS

// A mark has magic upper bits, which distinguish it from a real limit, and
// below them whether the run is within another one, the PID of the program that
// runs the agent, some bits of its PID namespace and a number of the run.
const (
	markMagic     = 0x2B5 << 50
	markOwn       = 1<<50 - 1 // the bits below
	markNested    = 1 << 49
	markPIDShift  = 27
	markPIDs      = 1 << 22 // more than Linux ever gives out
	markHereShift = 15
	markHeres     = 1 << 12
	markNumbers   = 1 << 15
)

func isMark(limit uint64) bool { return limit&^markOwn == markMagic }

// newMark returns a mark for a run that no other run of this program has, 0 when
// this system has none.
func newMark(nested bool) uint64 {
	base := uint64(markMagic | os.Getpid()%markPIDs<<markPIDShift | here()<<markHereShift)
	if nested {
		base |= markNested
	}
	for {
		mark := base | uint64(markNumber.Add(1)%markNumbers)
		if mark > hardLimit() {
			return 0
		}
		if !runs.marked(mark) {
			return mark
		}
	}
}

var markNumber = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32())
	return n
}()

// here is the part of a mark that identifies boot and PID namespace.
var here = sync.OnceValue(func() int {
	h := fnv.New32a()
	io.WriteString(h, bootID()+pidNamespace())
	return int(h.Sum32() % markHeres)
})

// markOwner returns the PID that a mark names as its owner; false when that is
// meaningless here: it belongs to another PID namespace or of a run within another run,
// which may be alive.
func markOwner(mark uint64) (pid int, ok bool) {
	if mark&markNested != 0 {
		return 0, false
	}
	return markedBy(mark)
}

// markedBy is markOwner for every mark of this PID namespace.
func markedBy(mark uint64) (pid int, ok bool) {
	if !isMark(mark) || int(mark>>markHereShift%markHeres) != here() {
		return 0, false
	}
	return int(mark >> markPIDShift % markPIDs), true
}

var hardLimit = sync.OnceValue(func() uint64 {
	var limit unix.Rlimit
	unix.Prlimit(0, markResource, nil, &limit)
	return limit.Max
})

// setMark marks a process that was just started and reports whether it could. A
// process that has a mark to hand down has the limit of agents, too.
func setMark(pid int, mark uint64) bool {
	setLimit(pid)
	if mark == 0 {
		return false
	}
	return unix.Prlimit(pid, markResource, &unix.Rlimit{Cur: mark, Max: hardLimit()}, nil) == nil
}

// readMark returns the mark of a process, 0 for none.
func readMark(pid int) uint64 {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, markResource, nil, &limit); err != nil || !isMark(limit.Cur) {
		return 0
	}
	return limit.Cur
}

func ownMark() uint64 { return readMark(0) }

// markEarly marks the descendants that the leader has started before it had a
// mark to hand down: few programs are that fast, but this one may have had to
// wait for a processor.
func (r *run) markEarly() {
	for range rounds {
		if last, ok := lastPID(); !ok || last == r.pid || !r.hasEarly(last) {
			return // the usual case: the leader has started nothing
		}
		alive, err := r.look()
		if err != nil && err != errUnsettled {
			return
		}
		marked := err == nil
		for _, m := range alive {
			if m.mark != r.mark {
				setMark(m.pid, r.mark)
				marked = false
			}
		}
		if marked {
			return
		}
	}
}

// hasEarly reports whether among the PIDs given out after that of the leader, which
// was just started, there may be one of a descendant without a mark. A descendant
// is in the session of the leader, or in one that is younger than the leader.
//
// It opens nothing in /proc: what was looked up below /proc/PID makes it dear to
// reap the process, several milliseconds where processors are busy.
func (r *run) hasEarly(last int) bool {
	if last < r.pid || last-r.pid > few {
		return true
	}
	for pid := r.pid + 1; pid <= last; pid++ {
		session, err := unix.Getsid(pid)
		if err == nil && session >= r.pid && session <= last && readMark(pid) == 0 {
			return true
		}
	}
	return false
}
