package process

import "os"

// A kinship decides which processes belong to a run, or to the runs of dead
// owners. It is the only place that does: the end of a run, its last chase and the
// sweep of what dead owners left ask it alone.
//
// What the kernel alone writes is proof: a parent, a session. What a process can
// write about itself, its tag, and about any process of its user, a mark, is only
// a claim. A claim counts for a process that has lost its parent and shares its
// session with nothing that is alive and not a member, which is what an orphan of
// the run looks like, and only if it was born after the owner that it names.
type kinship struct {
	// claim returns the owner that tag and mark of a process name.
	claim func(p process) (owner ownerID, ok bool)
	// adopts reports whether orphans of the owner's runs get this process as their
	// parent.
	adopts func(parent process, owner ownerID) bool

	table    map[int]process // what a scan showed, by PID
	parents  map[int]known   // members, by PID
	sessions map[int]known   // sessions of members
}

func newKinship(table []process) *kinship {
	k := &kinship{table: make(map[int]process, len(table)), parents: map[int]known{}, sessions: map[int]known{}}
	for _, p := range table {
		k.table[p.pid] = p
	}
	return k
}

// add makes a process a member.
func (k *kinship) add(p process, owner ownerID) {
	k.parents[p.pid] = known{p.born, owner}
	if p.session != 0 && p.session != self().session {
		k.sessions[p.session] = known{p.born, owner}
	}
}

// proves reports whether a process provably belongs to the members, and to which
// owner.
func (k *kinship) proves(p process) (owner ownerID, ok bool) {
	if m, found := k.parents[p.parent]; found && p.born >= m.born {
		return m.owner, true
	}
	if m, found := k.sessions[p.session]; found && p.born >= m.owner.born {
		return m.owner, true
	}
	if owner, ok = k.claim(p); ok && p.born >= owner.born && k.isOrphan(p, owner) {
		return owner, true
	}
	return ownerID{}, false
}

// isOrphan reports whether a process is one that has lost its parent, as far as
// can be seen, and is in no session of others.
func (k *kinship) isOrphan(p process, owner ownerID) bool {
	if p.session == self().session {
		return false // every run begins a session
	}
	if p.session != p.pid {
		if leader, alive := k.find(p.session); alive && !k.isMember(leader) {
			return false
		}
	}
	parent, alive := k.find(p.parent)
	return !alive || k.adopts(parent, owner)
}

func (k *kinship) isMember(p process) bool {
	m, ok := k.parents[p.pid]
	return ok && m.born == p.born
}

// find returns the process with a PID, also one that the look does not show.
func (k *kinship) find(pid int) (p process, alive bool) {
	if pid <= 0 {
		return p, false
	}
	p, ok := k.table[pid]
	if !ok {
		var err error
		if p, err = readProcess(pid); err != nil {
			return p, false
		}
	}
	return p, !p.dead
}

// ancestry returns the PIDs of this process and of what it descends from.
func ancestry() map[int]bool {
	line := map[int]bool{1: true}
	for pid := os.Getpid(); pid > 0 && !line[pid]; {
		line[pid] = true
		p, err := readProcess(pid)
		if err != nil {
			break
		}
		pid = p.parent
	}
	return line
}
