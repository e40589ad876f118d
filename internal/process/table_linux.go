package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of start times in /proc: USER_HZ is 100 wherever Go
// runs.
const clockTick = 10 * time.Millisecond

// now returns a horizon without a PID.
func now() horizon {
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return horizon{at: time.Now()}
	}
	return horizon{born: uint64(boot.Nano()) / uint64(clockTick), at: time.Now()}
}

var errNoTable = errors.New("/proc does not show the processes of this PID namespace")

// procUsable reports whether /proc exists and belongs to our PID namespace.
var procUsable = sync.OnceValue(func() bool {
	pid, err := os.Readlink("/proc/self")
	return err == nil && pid == strconv.Itoa(os.Getpid())
})

// readTable returns the processes born since h.
func readTable(h horizon, wanted marks) ([]process, error) {
	if !procUsable() {
		return nil, errNoTable
	}
	r := reader{from: h, wanted: wanted}
	last, ok := lastPID()
	first := last - margin // where catchUp begins
	if ok && h.pid != 0 && last >= h.pid && last-h.pid <= few && time.Since(h.at) < recent {
		first = h.pid + 1
	} else if err := r.addAll(); err != nil || !ok {
		return r.table, r.blinded(err)
	}
	return r.table, r.blinded(r.catchUp(first))
}

// blinded returns err, or that a process could not be read.
func (r *reader) blinded(err error) error {
	if err == nil && r.blind {
		return errNoFiles
	}
	return err
}

const (
	// recent is how young a horizon must be for the PIDs since to be a range:
	// so young that PIDs, 32768 at least and given out in turn, cannot have
	// started over.
	recent = 50 * time.Millisecond
	// few is how many PIDs are tried one by one before a listing is cheaper.
	few = 256
	// margin is how many PIDs may be given out during one fork.
	margin = 64
	// rounds bounds catchUp where processes are born without a pause.
	rounds = 50
)

// lastPID returns the PID given out last in our namespace. Not every kernel
// says it.
func lastPID() (int, bool) {
	fd := lastPIDFile()
	if fd < 0 {
		return 0, false
	}
	var buf [16]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return 0, false
	}
	last, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
	return last, err == nil
}

var lastPIDFile = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/sys/kernel/ns_last_pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// A reader reads processes into a table.
type reader struct {
	from    horizon
	wanted  marks
	table   []process
	seen    map[int]bool // PIDs in table
	environ []byte       // buffer
	blind   bool         // a process could not be read, because too many files are open
}

// addAll adds all processes born since the horizon.
func (r *reader) addAll() error {
	if adoptsAll.Load() {
		reapChildren() // or a flood of zombies makes each look slower than the agent forks
	}
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if lacksFiles(err) {
		return errNoFiles
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	entries := make([]byte, 32<<10)
	var names []string
	for {
		n, err := unix.Getdents(dir, entries)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		_, _, names = unix.ParseDirent(entries[:n], -1, names[:0])
		for _, name := range names {
			if name[0] < '0' || name[0] > '9' {
				continue
			}
			if pid, err := strconv.Atoi(name); err == nil {
				r.add(pid)
			}
		}
	}
}

// addRange adds the processes with these PIDs that are not there yet.
func (r *reader) addRange(first, last int) {
	for pid := first; pid <= last; pid++ {
		if r.seen[pid] {
			continue
		}
		if _, err := unix.Getsid(pid); err == nil { // far cheaper than to open a file
			r.add(pid)
		}
	}
}

// catchUp adds the processes with PIDs from first on, until no PID is given out
// meanwhile. A process born during a scan may be the child of one that has ended before
// the look reached it: without catchUp, a chain of processes that each fork and exit is
// seen only by chance. A PID is given out well before its process can be seen, so PIDs
// without a process are tried again: their parents cannot end before they exist.
func (r *reader) catchUp(first int) error {
	for range rounds {
		last, _ := lastPID()
		if last < first-1 { // PIDs have started over
			r.table, r.seen = nil, nil
			if err := r.addAll(); err != nil {
				return err
			}
			first = last - margin
		}
		r.addRange(max(first, 1), last)
		if now, _ := lastPID(); now == last {
			return nil
		}
		first = max(first, last-margin)
	}
	return errUnsettled
}

// add adds the process if it was born since the horizon.
func (r *reader) add(pid int) {
	if r.wanted != nil && runs.leads(pid) {
		return // no leader is a member, and with many runs most processes are leaders
	}
	// A mark costs least to read, and with many runs at once most processes bear
	// that of another.
	mark := readMark(pid)
	if mark != 0 && runs.isElsewhere(pid, mark, r.wanted) {
		return
	}
	p, err := r.read(pid, mark)
	if err != nil {
		r.blind = r.blind || err == errNoFiles
		return
	}
	r.table = append(r.table, p)
	if r.seen == nil {
		r.seen = make(map[int]bool)
	}
	r.seen[pid] = true
}

// read returns a process that was born since the horizon.
func (r *reader) read(pid int, mark uint64) (process, error) {
	p, err := readProcess(pid)
	if err != nil {
		return p, err
	}
	if p.born < r.from.born {
		return p, errNoProcess
	}
	p.mark = mark
	if !p.dead {
		if r.environ == nil {
			r.environ = make([]byte, 32<<10)
		}
		r.environ, err = readFile(pid, "environ", r.environ)
		r.blind = r.blind || err != nil
		p.tag = findTag(r.environ)
		r.environ = r.environ[:cap(r.environ)]
	}
	return p, nil
}

var errNoProcess = errors.New("no such process")

// readProcess reads what a table holds of a process, but its mark and tag.
func readProcess(pid int) (process, error) {
	var buf [1024]byte
	stat, err := readFile(pid, "stat", buf[:])
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, stat)
}

// readProc returns the content of a file of a process in buf or in a larger
// buffer; nothing when it cannot be read.
func readProc(pid int, name string, buf []byte) []byte {
	content, _ := readFile(pid, name, buf)
	return content
}

// readFile is readProc with an error, which is errNoFiles or nil.
func readFile(pid int, name string, buf []byte) ([]byte, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	switch {
	case lacksFiles(err):
		return buf[:0], errNoFiles
	case err != nil:
		return buf[:0], nil
	}
	defer unix.Close(fd)
	const limit = 8 << 20 // above what the kernel lets an environment be
	n := 0
	for {
		if n == len(buf) {
			if n >= limit {
				return buf, nil
			}
			buf = append(buf, make([]byte, len(buf))...)
		}
		k, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || k <= 0 {
			return buf[:n], nil
		}
		n += k
	}
}

// lacksFiles reports whether err is that this program or the system has too many open files.
func lacksFiles(err error) bool { return err == unix.EMFILE || err == unix.ENFILE }

// environment returns the environment a process was started with, as NUL-terminated
// strings; nothing when it may not be read.
func environment(pid int) []byte { return readProc(pid, "environ", make([]byte, 4096)) }

// Fields of /proc/PID/stat behind the name, counted from the state.
const (
	statState      = 0
	statParent     = 1
	statSession    = 3
	statThreads    = 17
	statStart      = 19
	statExitSignal = 35
)

// parseStat parses /proc/PID/stat. Threads, which can be opened by number too,
// are not processes.
func parseStat(pid int, stat []byte) (process, error) {
	end := bytes.LastIndexByte(stat, ')') // the name may hold anything
	if end < 0 || end+2 >= len(stat) {
		return process{}, errNoProcess
	}
	p := process{pid: pid}
	var state byte
	threads, exitSignal, i := 0, 0, 0
	for field := range bytes.SplitSeq(stat[end+2:], []byte{' '}) {
		switch i {
		case statState:
			state = field[0]
		case statParent:
			p.parent = number(field)
		case statSession:
			p.session = number(field)
		case statThreads:
			threads = number(field)
		case statStart:
			p.born = uint64(number(field))
		case statExitSignal:
			exitSignal = number(field)
		}
		i++
	}
	if i <= statExitSignal || exitSignal < 0 {
		return process{}, errNoProcess
	}
	// A process whose first thread has ended looks dead while others run.
	p.dead = state == 'X' || state == 'Z' && threads <= 1
	return p, nil
}

func number(digits []byte) int {
	n, _ := strconv.Atoi(string(digits))
	return n
}
