package process

import (
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Leftover is a process of a run whose owner, the program that ran the agent,
// was killed.
type Leftover struct {
	PID   int
	Owner int      // PID that the owner had
	Names []string // of its program: of the executable and of the script it runs
	Born  time.Time

	born uint64
}

// leftoverGrace is the time between SIGTERM and SIGKILL for a leftover. The
// agent has had SIGTERM before, when its owner died.
const leftoverGrace = time.Second

// Leftovers returns the processes of this user that dead owners have left, see
// "Leftovers" in the package comment; with an owner other than 0 those of the
// owner that had this PID. It signals nothing. An error means that they are not
// known.
func Leftovers(owner int) ([]Leftover, error) {
	left, err := newLeftovers(owner).look()
	if err == errUnsettled {
		err = nil
	}
	return left, err
}

// EndLeftovers ends the processes that Leftovers returns, by SIGTERM and, if
// they live a second later, by SIGKILL, and what they start meanwhile. It returns
// those that it ended and those that it could not end.
func EndLeftovers(owner int) (ended, survived []Leftover, err error) {
	l := newLeftovers(owner)
	left, err := l.look()
	if err != nil && err != errUnsettled {
		return nil, nil, err
	}
	for _, one := range left {
		signalLeftover(one, unix.SIGTERM)
	}
	if left, err = l.until(leftoverGrace, nil); len(left) > 0 {
		left, err = l.until(sweepLimit, func(left []Leftover) {
			// The youngest first: what flees by forking is soon gone.
			for _, one := range slices.Backward(left) {
				signalLeftover(one, unix.SIGKILL)
			}
			l.chase()
		})
	}
	alive := func(one Leftover) bool { return slices.ContainsFunc(left, one.is) }
	ended = slices.DeleteFunc(slices.Clone(l.seen), alive)
	if err == errUnsettled {
		err = nil
	}
	return ended, left, err
}

func (l Leftover) is(other Leftover) bool { return l.PID == other.PID && l.born == other.born }

// leftovers looks for leftovers, again and again.
type leftovers struct {
	owner int
	seen  []Leftover
	known map[int]known // by PID
	marks map[uint64]bool
	same  func(pid int) bool // whether a process runs as this user
}

// known is a leftover that was seen to be one: it stays that when nothing but
// these numbers tells so any more.
type known struct {
	born  uint64
	owner ownerID
}

func newLeftovers(owner int) *leftovers {
	return &leftovers{owner: owner, known: make(map[int]known), marks: make(map[uint64]bool), same: sameUser}
}

// until looks until nothing is left or the time is over, and returns what is left
// then. Unless it is nil, each is called with what a look found, leastLooks times
// in any case.
func (l *leftovers) until(limit time.Duration, each func([]Leftover)) ([]Leftover, error) {
	deadline := time.Now().Add(limit)
	for round, pause := 1, time.Millisecond; ; round, pause = round+1, min(2*pause, 20*time.Millisecond) {
		left, err := l.look()
		if len(left) == 0 && err != errUnsettled || (each == nil || round > leastLooks) && time.Now().After(deadline) {
			return left, err
		}
		if each != nil {
			each(left)
		}
		time.Sleep(pause)
	}
}

func (l *leftovers) look() ([]Leftover, error) {
	if !canSee() {
		return nil, errNoTable
	}
	table, err := readTable(horizon{}, nil)
	if err != nil && err != errUnsettled {
		return nil, err
	}
	var alive []Leftover
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

// members returns the leftovers in a table that are alive.
//
// Never one of them is a process that has the tag of a live owner, or of one of
// which nothing is known here: that owner ends it. Nor is this process, what it
// descends from, and what shares a run with it.
func (l *leftovers) members(table []process) (members []Leftover) {
	var (
		parents  = map[int]ownerID{}
		sessions = map[int]ownerID{}
		marks    = map[uint64]ownerID{}
		own      = self()
		spared   = ancestors(table, own.pid)
		ownTag   = os.Getenv(tagVariable)
	)
	add := func(p process, o ownerID) {
		parents[p.pid] = o
		if p.session != 0 && p.session != own.session {
			sessions[p.session] = o
		}
		if p.mark != 0 && p.mark != own.mark {
			marks[p.mark], l.marks[p.mark] = o, true
		}
		l.known[p.pid] = known{p.born, o}
		if !p.dead {
			members = append(members, Leftover{PID: p.pid, Owner: o.pid, born: p.born})
		}
	}
	var rest []process
	for _, p := range table {
		o, standing := l.standing(p, ownTag)
		switch {
		case spared[p.pid] || standing == isOthers:
		case standing == isLeft:
			if l.same(p.pid) {
				add(p, o)
			}
		default:
			rest = append(rest, p)
		}
	}
	for again := true; again; {
		again = false
		others := rest[:0]
		for _, p := range rest {
			o, found := parents[p.parent]
			if !found {
				o, found = sessions[p.session]
			}
			if !found {
				o, found = marks[p.mark]
			}
			if k, ok := l.known[p.pid]; !found && ok && k.born == p.born {
				o, found = k.owner, true
			}
			if !found || p.born < o.born || !l.same(p.pid) {
				others = append(others, p)
				continue
			}
			again = true
			add(p, o)
		}
		rest = others
	}
	return members
}

// A standing is what tag and mark alone say of a process.
type standing int

const (
	isUnknown standing = iota
	isLeft
	isOthers
)

// standing returns the outermost owner of a process that is left.
func (l *leftovers) standing(p process, ownTag string) (o ownerID, s standing) {
	if p.tag == "" {
		return l.marked(p)
	}
	asked := l.owner == 0
	for i, entry := range strings.Split(p.tag, ",") {
		this, ok := parseEntry(entry)
		if !ok || tagged(ownTag, entry) || !this.dead() {
			return ownerID{}, isOthers
		}
		if i == 0 {
			o = this
		}
		asked = asked || l.owner == this.pid
	}
	if !asked || p.born < o.born {
		return ownerID{}, isOthers
	}
	return o, isLeft
}

// marked is standing for a process without a tag.
func (l *leftovers) marked(p process) (o ownerID, s standing) {
	pid, ok := markOwner(p.mark)
	if !ok || p.mark == self().mark || l.owner != 0 && l.owner != pid {
		return ownerID{}, isUnknown
	}
	if other, err := readProcess(pid); !isGone(pid) && (err != nil || !other.dead && other.born <= p.born) {
		return ownerID{}, isUnknown
	}
	return ownerID{pid: pid}, isLeft
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

// signalLeftover signals a leftover if it is still that.
func signalLeftover(l Leftover, sig unix.Signal) bool {
	return (&run{}).signal(process{pid: l.PID, born: l.born}, sig)
}
