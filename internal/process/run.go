package process

import (
	"os"
	"sync"
)

// A run is a started process, its leader, and what tells its descendants from
// all other processes. See "What belongs to a run" in the package comment.
type run struct {
	pid   int     // of the leader; its group and its session have the same number
	from  horizon // a moment before the start
	entry string  // its entry in the tag
	mark  uint64  // its mark, 0 for none

	tables *sharedTable

	// known are descendants seen by earlier looks, PID to start time: they
	// stay ours when nothing but these numbers tells so any more.
	known map[int]uint64
}

// newRun returns a run that starts with the environment env.
func newRun(env []string) run {
	return run{
		entry:  newEntry(),
		mark:   newMark(os.Getenv(tagVariable) != "" || outerTag(env) != ""),
		known:  make(map[int]uint64),
		tables: &tables,
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
		own      = self()
		members  []process
		parents  = map[int]bool{r.pid: true}
		sessions = map[int]bool{r.pid: true}
		marks    = map[uint64]bool{}
		rest     = make([]process, 0, len(table))
	)
	if r.mark != 0 {
		marks[r.mark] = true
	}
	if r.adopted() {
		parents[own.pid] = true // leaders are left out below
	}
	for _, p := range table {
		if p.pid != r.pid && p.pid != own.pid && p.born >= r.from.born && !runs.leads(p.pid) {
			rest = append(rest, p)
		}
	}
	// A member makes members of its children, of its session and of those with
	// its mark, so look until there is nothing new.
	for again := true; again; {
		again = false
		others := rest[:0]
		for _, p := range rest {
			born, known := r.known[p.pid]
			known = known && born == p.born
			if !known && !parents[p.parent] && !sessions[p.session] && !marks[p.mark] && !tagged(p.tag, r.entry) {
				others = append(others, p)
				continue
			}
			again = true
			members = append(members, p)
			r.known[p.pid] = p.born
			parents[p.pid] = true
			if p.session != 0 && p.session != own.session {
				sessions[p.session] = true
			}
			if p.mark != 0 && p.mark != own.mark {
				marks[p.mark] = true
			}
		}
		rest = others
	}
	return members
}

// An identity is what this process shares with processes that are none of ours.
type identity struct {
	pid, session int
	mark         uint64
}

var self = sync.OnceValue(func() identity {
	return identity{pid: os.Getpid(), session: ownSession(), mark: ownMark()}
})

// runs are the runs of this program that have not ended.
var runs registry

type registry struct {
	mu      sync.Mutex
	begun   int // runs that have, or may have, a leader that is not in leaders
	leaders map[int]horizon
	marks   map[uint64]bool
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
		g.leaders = make(map[int]horizon)
		g.marks = make(map[uint64]bool)
	}
	g.leaders[r.pid] = r.from
	if r.mark != 0 {
		g.marks[r.mark] = true
	}
}

func (g *registry) remove(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leaders, r.pid)
	delete(g.marks, r.mark)
}

// isOnly reports whether there is no run but r, not even one that begins.
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
	return g.marks[mark]
}

// oldest returns the horizon of the run that began first; false without runs.
func (g *registry) oldest() (oldest horizon, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, from := range g.leaders {
		if !ok || from.before(oldest) {
			oldest, ok = from, true
		}
	}
	return oldest, ok
}
