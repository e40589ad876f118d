package process

import (
	"cmp"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	const leaderPID, start = 1 << 22, 1000 // no such PID can exist
	r := run{pid: leaderPID, from: horizon{born: start}, entry: "entry", mark: 7, known: map[int]uint64{}}
	own := self()
	at := func(offset int, p process) process { return inTable(leaderPID+offset, start, p) }
	for name, test := range map[string]struct {
		known map[int]uint64
		table []process
		want  []int // offsets
	}{
		"leader itself": {table: []process{at(0, process{session: leaderPID, tag: "entry", mark: 7})}},
		"child":         {table: []process{at(1, process{parent: leaderPID})}, want: []int{1}},
		"child of a child, listed first": {
			table: []process{at(1, process{parent: leaderPID + 2}), at(2, process{parent: leaderPID})},
			want:  []int{1, 2},
		},
		"session": {table: []process{at(1, process{parent: 1, session: leaderPID})}, want: []int{1}},
		"session of a member": {
			table: []process{at(1, process{parent: 1, session: 99}), at(2, process{parent: leaderPID, session: 99})},
			want:  []int{1, 2},
		},
		"session of this process": {
			table: []process{at(1, process{parent: 1, session: ownSessionID}), at(2, process{parent: leaderPID, session: ownSessionID})},
			want:  []int{2},
		},
		"mark":                           {table: []process{at(1, process{parent: 1, mark: 7})}, want: []int{1}},
		"other mark":                     {table: []process{at(1, process{parent: 1, mark: 8})}},
		"tag":                            {table: []process{at(1, process{tag: "a,entry,b"})}, want: []int{1}},
		"other tag":                      {table: []process{at(1, process{tag: "a,entryb"})}},
		"older":                          {table: []process{at(1, process{parent: leaderPID, born: start - 1, tag: "entry", mark: 7})}},
		"known":                          {known: map[int]uint64{leaderPID + 1: start}, table: []process{at(1, process{parent: 1})}, want: []int{1}},
		"PID of a known one, born later": {known: map[int]uint64{leaderPID + 1: start}, table: []process{at(1, process{parent: 1, born: start + 1})}},
		"child of a PID that was known": {
			known: map[int]uint64{leaderPID + 1: start},
			table: []process{at(1, process{parent: 1, born: start + 1}), at(2, process{parent: leaderPID + 1, born: start + 2})},
		},
		"copied tag below another process":  {table: []process{at(1, process{parent: leaderPID + 9, tag: "entry"}), at(9, process{})}},
		"copied tag in another session":     {table: []process{at(1, process{parent: 1, session: leaderPID + 9, tag: "entry"}), at(9, process{})}},
		"copied tag in this session":        {table: []process{at(1, process{parent: 1, session: ownSessionID, tag: "entry"})}},
		"copied mark below another process": {table: []process{at(1, process{parent: leaderPID + 9, mark: 7}), at(9, process{})}},
		"copied mark in another session":    {table: []process{at(1, process{parent: 1, session: leaderPID + 9, mark: 7}), at(9, process{})}},
		"copied mark and another tag":       {table: []process{at(1, process{parent: 1, mark: 7, tag: "other"})}},
		"mark of another that a member copied": {
			table: []process{at(1, process{parent: leaderPID, mark: 8}), at(2, process{parent: 1, mark: 8}), at(3, process{parent: 1, mark: 8, tag: "other"})},
			want:  []int{1},
		},
		"this process": {table: []process{{pid: own.pid, born: start, tag: "entry", mark: 7}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := r
			r.known = map[int]uint64{}
			for pid, born := range test.known {
				r.known[pid] = born
			}
			var got []int
			for _, m := range r.members(test.table) {
				got = append(got, m.pid-leaderPID)
			}
			slices.Sort(got)
			if text := diff.Diff(test.want, got); text != "" {
				t.Error(text)
			}
		})
	}
}

func TestLeadersOfOtherRunsAreNotMembers(t *testing.T) {
	t.Parallel()
	other := run{pid: 1<<22 + 100}
	runs.begin()
	runs.add(&other)
	defer runs.remove(&other)
	r := run{pid: 1<<22 + 101, entry: "entry", known: map[int]uint64{}}
	if got := r.members([]process{{pid: other.pid, tag: "entry"}}); len(got) > 0 {
		t.Error(got)
	}
}

// ownSessionID is the session of this process in the tables of tests.
const ownSessionID = -1

// inTable completes a process of a test's table. A process without a session gets a new
// one: the session of this process is 0 too where its leader is in another PID
// namespace.
func inTable(pid int, born uint64, p process) process {
	p.pid = pid
	p.born = cmp.Or(p.born, born)
	if p.session == ownSessionID {
		p.session = self().session
	} else {
		p.session = cmp.Or(p.session, pid)
	}
	return p
}
