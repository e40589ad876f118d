package process

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// reserve is how many processes and threads of the user the agents of this program
// leave free. An agent that forks without end is refused more while this program can
// still start the threads with which it ends the agent, as can other programs like it
// and the shell from which the user looks.
const reserve = 128

// agentLimit is the RLIMIT_NPROC of agents, which they hand down: reserve less than
// what limits this program. It is false where there is no limit, or no room.
var agentLimit = sync.OnceValues(func() (limit unix.Rlimit, ok bool) {
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &limit); err != nil {
		return limit, false
	}
	room, groups, total := systemRoom()
	used := uint64(0)
	if mustCount(limit.Cur, leastRoom(room, groups, 0), total) {
		used = ownTasks() // which reads every process
	}
	limit.Cur, ok = lessReserve(limit.Cur, used, leastRoom(room, groups, used))
	limit.Max = limit.Cur // it could raise it otherwise
	return limit, ok
})

// mustCount reports whether the limit of an agent depends on how many of all processes and
// threads, total, are of the user. Without them, the limit by the room is lower. That
// makes no difference to an agent where they are few: it still gets three quarters of the
// room.
func mustCount(limit, room, total uint64) bool {
	few := total < room/4 && room/4-total >= reserve
	return room < limit && !few || limit-min(total, limit) < 4*reserve
}

// lessReserve returns the limit of an agent whose user has a limit, a number of
// processes and threads, and room for that many more by the limits of the system. An
// agent gets three quarters of the room at least.
func lessReserve(limit, used, room uint64) (uint64, bool) {
	if room < math.MaxUint64-used {
		limit = min(limit, used+room)
	}
	if limit == unix.RLIM_INFINITY || limit <= used {
		return 0, false
	}
	return limit - min(reserve, (limit-used)/4), true
}

// A group is a control group that this process is in.
type group struct {
	room  uint64 // how many processes and threads it can start
	tasks uint64 // how many it has
}

// leastRoom returns the least of room and those of the groups that have most of the used
// tasks of the user. The limit of a user counts what is in no such group as well, so it does
// not depend on the room of a smaller one.
func leastRoom(room uint64, groups []group, used uint64) uint64 {
	for _, g := range groups {
		if g.tasks >= used-used/4 {
			room = min(room, g.room)
		}
	}
	return room
}

// setLimit keeps a process that was just started from using up what this program needs.
func setLimit(pid int) {
	if limit, ok := agentLimit(); ok {
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
	}
}

// firstNamespaces are the names that the kernel gives the namespaces it starts with.
var firstNamespaces = map[string]string{"pid": "pid:[4026531836]", "user": "user:[4026531837]"}

// systemRoom returns how many processes and threads can be started before the system or
// the control groups of this process refuse more, and how many there are. In a
// namespace it returns no limit: the limit of a user counts what is outside as well,
// which cannot be seen.
func systemRoom() (room uint64, groups []group, total uint64) {
	room, total = math.MaxUint64, math.MaxUint64
	if load := strings.Fields(firstLine("/proc/loadavg")); len(load) > 3 {
		if _, n, found := strings.Cut(load[3], "/"); found {
			total = limitOf(n)
		}
	}
	for kind, name := range firstNamespaces {
		if here, _ := os.Readlink("/proc/self/ns/" + kind); here != name {
			return room, nil, total
		}
	}
	roomOf := func(limit, used uint64) uint64 {
		if limit == math.MaxUint64 || used == math.MaxUint64 {
			return math.MaxUint64
		}
		return limit - min(used, limit)
	}
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		room = min(room, roomOf(limitOf(firstLine(file)), total))
	}
	listed, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(listed)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		top := "/sys/fs/cgroup"
		switch {
		case len(fields) < 3:
			continue
		case fields[1] == "pids":
			top += "/pids"
		case fields[1] != "":
			continue
		}
		for dir := filepath.Join(top, fields[2]); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			tasks := limitOf(firstLine(dir + "/pids.current"))
			groups = append(groups, group{roomOf(limitOf(firstLine(dir+"/pids.max")), tasks), tasks})
		}
	}
	return room, groups, total
}

// ownTasks returns how many processes and threads of this user can be seen.
func ownTasks() (n uint64) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	uid := strconv.Itoa(unix.Getuid())
	for _, name := range names {
		var buf [4096]byte
		mine, threads := false, 1 // of a zombie the kernel does not show it
		for line := range bytes.Lines(readProc(number([]byte(filepath.Base(name))), "status", buf[:])) {
			switch fields := bytes.Fields(line); {
			case len(fields) < 2:
			case string(fields[0]) == "Uid:":
				mine = string(fields[1]) == uid
			case string(fields[0]) == "Threads:":
				threads = number(fields[1])
			}
		}
		if mine {
			n += uint64(threads)
		}
	}
	return n
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// limitOf returns a number, or the highest one for anything else.
func limitOf(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	return math.MaxUint64
}
