package process

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/busdk/bus-agent/internal/unix"
)

// A run is a started process, its leader, and what distinguishes its descendants from
// all other processes. See "What belongs to a run" in the package comment.
type run struct {
	pid   int     // of the leader; its group and its session have the same number
	from  horizon // a moment before the start
	entry string  // its entry in the tag
	mark  uint64  // its mark, 0 for none

	tables *sharedTable

	// known are descendants seen by earlier looks, PID to start time: they
	// stay ours when only these numbers show it.
	known  map[int]uint64
	owners map[int]uint64 // dead owners of runs within this one, PID to start time

	kin      *kinship // of the last look
	adopting bool     // orphans get this process as their parent
}

// newRun returns a run that starts with the environment env.
func newRun(env []string) run {
	return run{
		entry:  newEntry(),
		mark:   newMark(os.Getenv(TagVariable) != "" || outerTag(env) != ""),
		known:  make(map[int]uint64),
		owners: make(map[int]uint64),
		tables: &tables,

		adopting: isSubreaper.Load(),
	}
}

// setLeader begins the run of a process that was just started.
func (r *run) setLeader(pid int) {
	r.pid = pid
	r.from.pid = pid
	if !setMark(pid, r.mark) {
		r.mark = 0
		return
	}
	r.markEarly()
}

// A process is what one look at the system's process table shows of a process.
type process struct {
	pid, parent, session int

	born uint64 // start time in the unit of horizon.born
	dead bool   // a zombie: it has ended and waits for its parent
	mark uint64 // 0 for none
	tag  string // its tag variable, empty when it has none or cannot be read
}

// members returns the descendants of r in the table, dead ones included, and
// remembers them. The leader is not one of them.
func (r *run) members(table []process) []process {
	var (
		own     = self()
		members []process
		rest    = make([]process, 0, len(table))
	)
	r.kin = r.kinship(table)
	for _, p := range table {
		if p.pid != r.pid && p.pid != own.pid && p.born >= r.from.born && !runs.leads(p.pid) {
			rest = append(rest, p)
		}
	}
	// A member makes members of others, so look until there is nothing new.
	for again := true; again; {
		again = false
		others := rest[:0]
		for _, p := range rest {
			born, known := r.known[p.pid]
			if !known || born != p.born {
				if _, ok := r.kin.proves(p); !ok {
					others = append(others, p)
					continue
				}
			}
			again = true
			members = append(members, p)
			r.add(p)
		}
		rest = others
	}
	return members
}

// kinship returns the rules that find the members in a table.
func (r *run) kinship(table []process) *kinship {
	k := newKinship(table)
	k.parents[r.pid] = known{born: r.from.born}
	k.sessions[r.pid] = known{born: r.from.born}
	if r.adopted() {
		k.parents[self().pid] = known{born: r.from.born} // leaders are left out
	}
	k.claim = func(p process) (ownerID, bool) { return ownerID{born: r.from.born}, r.claimed(p) }
	line := sync.OnceValue(ancestry)
	k.adopts = func(parent process, _ ownerID) bool {
		if r.adopting {
			return parent.pid == self().pid
		}
		return line()[parent.pid]
	}
	return k
}

// add remembers a member, and the owners of the runs within this one that its tag
// names.
func (r *run) add(p process) {
	r.kin.add(p, ownerID{born: r.from.born})
	r.known[p.pid] = p.born
	if _, inner, ok := strings.Cut(p.tag, r.entry+","); ok {
		for entry := range strings.SplitSeq(inner, ",") {
			if o, ok := parseEntry(entry); ok && o.dead() {
				r.owners[o.pid] = o.born
			}
		}
	}
}

// claimed reports whether the tag of a process has the entry of the run or, where
// it has no tag, its mark is that of the run or of a run within it: one whose
// owner is or was a member.
func (r *run) claimed(p process) bool {
	if p.tag != "" {
		return tagged(p.tag, r.entry)
	}
	if p.mark == 0 {
		return false
	}
	if p.mark == r.mark {
		return true
	}
	pid, ok := markedBy(p.mark)
	if !ok || pid == self().pid {
		return false
	}
	for _, owners := range []map[int]uint64{r.known, r.owners} {
		if born, ok := owners[pid]; ok && p.born >= born {
			return true
		}
	}
	return false
}

// An identity holds numbers of this process that mark other processes as not ours.
type identity struct {
	pid, session int
	mark         uint64
}

var self = sync.OnceValue(func() identity {
	return identity{pid: os.Getpid(), session: ownSession(), mark: ownMark()}
})

// isSubreaper says that this process adopts the orphans of its runs.
var isSubreaper atomic.Bool

// runs are the runs of this program that have not ended.
var runs registry

type registry struct {
	// reaping is held while a leader is reaped: until then its number is its own.
	// It is taken before mu.
	reaping sync.Mutex

	mu      sync.Mutex
	begun   int // runs that have, or may have, a leader that is not in leaders
	leaders map[int]*run
	marks   map[uint64]int // to the PID of the leader
	since   uint64         // start of the first run whose processes may be left, 0 for none
}

// begin announces a run whose leader is about to be started; add or giveUp follows.
func (g *registry) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
}

func (g *registry) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun--
}

func (g *registry) add(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun--
	if g.leaders == nil {
		g.leaders = make(map[int]*run)
		g.marks = make(map[uint64]int)
	}
	g.leaders[r.pid] = r
	if g.since == 0 {
		g.since = r.from.born
	}
	if r.mark != 0 {
		g.marks[r.mark] = r.pid
	}
}

func (g *registry) remove(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leaders, r.pid)
	delete(g.marks, r.mark)
}

// isOnly reports whether r is the only run, those that begin included.
func (g *registry) isOnly(r *run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.leaders[r.pid]
	return ok && len(g.leaders) == 1 && g.begun == 0
}

// noneBegins reports whether every leader is known.
func (g *registry) noneBegins() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun == 0
}

// reapAdopted reaps a child that is not a leader if it has ended.
func (g *registry) reapAdopted(pid int) { g.endAdopted(pid, func() {}) }

// killAdopted does as reapAdopted, and kills a child that is alive and was born
// since. It returns the start time of what it has killed, 0 for nothing.
func (g *registry) killAdopted(pid int, since uint64) (born uint64, ended bool) {
	ended = g.endAdopted(pid, func() {
		p, err := readProcess(pid)
		if err == nil && p.born >= since && p.parent == self().pid && unix.Kill(pid, unix.SIGKILL) == nil {
			born = p.born
		}
	})
	return born, ended
}

// endAdopted reaps a child that is not a leader if it has ended, and calls alive
// otherwise. While a run begins, its leader is not known and nothing is done.
func (g *registry) endAdopted(pid int, alive func()) (ended bool) {
	adopting.Lock()
	defer adopting.Unlock()
	g.mu.Lock() // no run begins meanwhile, so the number stays that of the child
	defer g.mu.Unlock()
	if _, leads := g.leaders[pid]; leads || g.begun > 0 {
		return false
	}
	if _, ended = reap(pid); !ended {
		alive()
	}
	return ended
}

// count returns how many runs there are.
func (g *registry) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.leaders)
}

// leads reports whether pid is a child that a run started and has not reaped.
func (g *registry) leads(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.leaders[pid]
	return ok
}

// marked reports whether the mark is that of one of the runs.
func (g *registry) marked(mark uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.marks[mark] != 0
}

// isElsewhere reports whether a process is in the session of another run than one
// of the wanted. No process can enter a session.
func (g *registry) isElsewhere(pid int, mark uint64, wanted marks) bool {
	if wanted == nil || wanted[mark] {
		return false
	}
	g.mu.Lock()
	leader := g.marks[mark]
	g.mu.Unlock()
	if leader == 0 {
		return false
	}
	session, err := unix.Getsid(pid)
	return err == nil && session == leader
}

// oldest returns the horizon of the run that began first; false without runs.
func (g *registry) oldest() (oldest horizon, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.leaders {
		if !ok || r.from.before(oldest) {
			oldest, ok = r.from, true
		}
	}
	return oldest, ok
}
