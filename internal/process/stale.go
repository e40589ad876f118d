package process

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// A StaleProcess is a process of a run whose owner, the program that ran the agent,
// was killed.
type StaleProcess struct {
	PID   int
	Owner int      // PID that the owner had
	Names []string // of its program: of the executable and of the script it runs
	Born  time.Time

	born uint64
}

// staleGrace is the time between SIGTERM and SIGKILL for a stale process. The
// agent has had SIGTERM before, when its owner died.
const staleGrace = time.Second

// StaleProcesses returns the processes of this user that dead owners have left, see
// "Stale processes" in the package comment; with an owner other than 0 those of the
// owner that had this PID. It signals nothing. An error means that they are not
// known.
func StaleProcesses(owner int) ([]StaleProcess, error) {
	left, err := newStaleSearch(owner).look()
	if err == errUnsettled {
		err = nil
	}
	return left, err
}

// EndStaleProcesses ends the processes that StaleProcesses returns, by SIGTERM and, if
// they live a second later, by SIGKILL, and what they start meanwhile. It returns
// those that it ended and those that it could not end. When ctx ends it signals
// nothing more: what lives then counts as not ended.
func EndStaleProcesses(ctx context.Context, owner int) (ended, survived []StaleProcess, err error) {
	l := newStaleSearch(owner)
	left, err := l.look()
	if err != nil && err != errUnsettled {
		return nil, nil, err
	}
	for _, one := range left {
		signalStale(one, unix.SIGTERM)
	}
	if left, err = l.until(ctx, staleGrace, nil); len(left) > 0 && ctx.Err() == nil {
		left, err = l.until(ctx, sweepLimit, func(left []StaleProcess) {
			// The youngest first: what flees by forking is soon gone.
			for _, one := range slices.Backward(left) {
				signalStale(one, unix.SIGKILL)
			}
			l.chase()
		})
	}
	alive := func(one StaleProcess) bool { return slices.ContainsFunc(left, one.is) }
	ended = slices.DeleteFunc(slices.Clone(l.seen), alive)
	if err == errUnsettled {
		err = nil
	}
	return ended, left, err
}

func (l StaleProcess) is(other StaleProcess) bool { return l.PID == other.PID && l.born == other.born }

// staleSearch looks for stale processes, again and again.
type staleSearch struct {
	owner int
	seen  []StaleProcess
	known map[int]known      // by PID
	same  func(pid int) bool // whether a process runs as this user

	owners map[int]ownerID // dead owners that the tags of stale processes name, by PID
	kin    *kinship        // of the last look
}

// known is stale that was seen to be one: it stays that when nothing but
// these numbers shows it any more.
type known struct {
	born  uint64
	owner ownerID
}

func newStaleSearch(owner int) *staleSearch {
	return &staleSearch{owner: owner, known: make(map[int]known), owners: make(map[int]ownerID), same: sameUser}
}

// until looks until nothing is left or the time is over, and returns what is left
// then. Unless it is nil, each is called with what a scan found, leastLooks times
// in any case.
func (l *staleSearch) until(ctx context.Context, limit time.Duration, each func([]StaleProcess)) ([]StaleProcess, error) {
	deadline := time.Now().Add(limit)
	for round, pause := 1, time.Millisecond; ; round, pause = round+1, min(2*pause, 20*time.Millisecond) {
		left, err := l.look()
		if len(left) == 0 && err != errUnsettled || (each == nil || round > leastLooks) && time.Now().After(deadline) {
			return left, err
		}
		if each != nil {
			each(left)
		}
		select {
		case <-ctx.Done():
			return left, err
		case <-time.After(pause):
		}
	}
}

func (l *staleSearch) look() ([]StaleProcess, error) {
	if !canSee() {
		return nil, errNoTable
	}
	table, err := readTable(horizon{}, nil)
	if err != nil && err != errUnsettled {
		return nil, err
	}
	var alive []StaleProcess
	for _, m := range l.members(table) {
		i := slices.IndexFunc(l.seen, m.is)
		if i < 0 {
			i = len(l.seen)
			m.Names, m.Born = programNames(m.PID), bornAt(m.born)
			l.seen = append(l.seen, m)
		}
		alive = append(alive, l.seen[i])
	}
	return alive, err
}

// members returns the stale processes in a table that are alive.
//
// Never one of them is a process that has the tag of a live owner, or of one of
// which nothing is known here: that owner ends it. Nor is this process, what it
// descends from, and what shares a run with it.
func (l *staleSearch) members(table []process) (members []StaleProcess) {
	var (
		spared = ancestors(table, self().pid)
		ownTag = os.Getenv(TagVariable)
		rest   []process
	)
	l.kin = l.kinship(table, spared)
	for _, p := range table {
		if !spared[p.pid] && !l.isOthers(p, ownTag) {
			rest = append(rest, p)
		}
	}
	for again := true; again; {
		again = false
		others := rest[:0]
		for _, p := range rest {
			o, found := l.kin.proves(p)
			if k, ok := l.known[p.pid]; !found && ok && k.born == p.born {
				o, found = k.owner, true
			}
			if !found || !l.same(p.pid) {
				others = append(others, p)
				continue
			}
			again = true
			l.add(p, o)
			if !p.dead {
				members = append(members, StaleProcess{PID: p.pid, Owner: o.pid, born: p.born})
			}
		}
		rest = others
	}
	return members
}

// add remembers a stale process, and the owners of runs within runs that its tag names.
func (l *staleSearch) add(p process, o ownerID) {
	l.kin.add(p, o)
	l.known[p.pid] = known{p.born, o}
	for entry := range strings.SplitSeq(p.tag, ",") {
		if inner, ok := parseEntry(entry); ok {
			l.owners[inner.pid] = inner
		}
	}
}

// kinship returns what identifies the stale processes in a table.
func (l *staleSearch) kinship(table []process, line map[int]bool) *kinship {
	k := newKinship(table)
	k.claim = l.claimed
	owners := liveOwners(table)
	k.adopts = func(parent process, owner ownerID) bool {
		switch {
		case parent.pid == 1:
			return true
		case parent.pid == self().pid:
			return isSubreaper.Load()
		case owners[parent.pid]:
			return false // it ends its orphans
		case parent.parent == 1 || line[parent.pid]:
			return true
		}
		// An owner descends from what adopts its orphans.
		return owner.born > 0 && parent.born <= owner.born && parent.tag == ""
	}
	return k
}

// liveOwners returns the PIDs of the owners in the tags of a table that are alive.
func liveOwners(table []process) map[int]bool {
	owners := map[int]bool{}
	seen := map[string]bool{}
	for _, p := range table {
		for entry := range strings.SplitSeq(p.tag, ",") {
			if o, ok := parseEntry(entry); ok && !seen[entry] && !o.dead() {
				owners[o.pid] = true
			}
			seen[entry] = true
		}
	}
	return owners
}

// isOthers reports whether a process says that a live owner, or one of which
// nothing is known here, ends it.
func (l *staleSearch) isOthers(p process, ownTag string) bool {
	if p.tag == "" {
		pid, ok := markOwner(p.mark)
		return ok && (p.mark == self().mark || !isDeadOwner(pid, p.born))
	}
	for entry := range strings.SplitSeq(p.tag, ",") {
		if o, ok := parseEntry(entry); !ok || tagged(ownTag, entry) || !o.dead() {
			return true
		}
	}
	return false
}

// claimed returns the outermost owner that the tag of a process names or, where it
// has no tag, the owner that its mark names.
func (l *staleSearch) claimed(p process) (o ownerID, ok bool) {
	if p.tag == "" {
		return l.marked(p)
	}
	asked := l.owner == 0
	for i, entry := range strings.Split(p.tag, ",") {
		this, _ := parseEntry(entry)
		if i == 0 {
			o = this
		}
		asked = asked || l.owner == this.pid
	}
	return o, asked
}

// marked is claimed for a process without a tag. The mark does not hold the start
// time of its owner: that comes from another stale process, where there is one.
func (l *staleSearch) marked(p process) (o ownerID, ok bool) {
	pid, ok := markedBy(p.mark)
	if !ok {
		return o, false
	}
	if o, ok = l.owners[pid]; ok {
		return o, true
	}
	if pid, ok = markOwner(p.mark); !ok || l.owner != 0 && l.owner != pid {
		return ownerID{}, false
	}
	return ownerID{pid: pid}, isDeadOwner(pid, p.born)
}

// isDeadOwner reports whether a process born then cannot have been started by the
// process that has the PID now.
func isDeadOwner(pid int, born uint64) bool {
	return isGoneOr(pid, func(p process) bool { return p.dead || p.born > born })
}

// chase kills stale processes among the PIDs given out last.
func (l *staleSearch) chase() {
	chase(func(mark uint64) bool { return mark != self().mark }, func(p process) bool {
		if l.kin == nil || l.isOthers(p, os.Getenv(TagVariable)) || !l.same(p.pid) {
			return false
		}
		_, ok := l.kin.proves(p)
		return ok
	})
}

// ancestors returns pid and the PIDs of what it descends from.
func ancestors(table []process, pid int) map[int]bool {
	parents := make(map[int]int, len(table))
	for _, p := range table {
		parents[p.pid] = p.parent
	}
	line := map[int]bool{1: true}
	for ; pid != 0 && !line[pid]; pid = parents[pid] {
		line[pid] = true
	}
	return line
}

// signalStale signals a stale process if it is still that.
func signalStale(l StaleProcess, sig unix.Signal) bool {
	return signalProcess(process{pid: l.PID, born: l.born}, sig)
}
