package process

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"

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
// over exec and setsid, and shows it without a look at the environment, also of
// a zombie. The hard limit is left alone, so that a program may still set it.
const markResource = unix.RLIMIT_LOCKS

// A mark has magic upper bits, which tell it from a limit that somebody set, and
// random lower ones.
const (
	markMagic  = 0x2B5 << 50
	markRandom = 1<<50 - 1
)

func isMark(limit uint64) bool { return limit&^markRandom == markMagic }

// newMark returns a mark for a run, 0 when this system has none.
func newMark() uint64 {
	mark := markMagic | rand.Uint64()&markRandom
	if mark > hardLimit() {
		return 0
	}
	return mark
}

var hardLimit = sync.OnceValue(func() uint64 {
	var limit unix.Rlimit
	unix.Prlimit(0, markResource, nil, &limit)
	return limit.Max
})

// setMark marks a process that was just started and reports whether it could.
func setMark(pid int, mark uint64) bool {
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
		if last, ok := lastPID(); !ok || last == r.pid {
			return // the usual case: nobody has started anything
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
