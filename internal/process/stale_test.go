package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/testwait"
)

// startOwner starts a program in dir that runs an agent with the steps.
func startOwner(t *testing.T, dir string, env []string, steps ...step) *exec.Cmd {
	t.Helper()
	owner := fake([]step{{Do: "nest", Child: &child{Steps: steps}}})
	owner.Dir, owner.Env = dir, append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(owner) })
	return owner
}

// kill kills a child with SIGKILL and reaps it.
func kill(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// What an owner leaves that is killed is found and ended, and nothing else is.
func TestNoSurvivorsOfADeadOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	innocent := newBystanders(t, dir)
	var all sync.WaitGroup
	for kind, r := range restlessAgents {
		all.Go(func() {
			t.Run(kind, func(t *testing.T) {
				defer innocent.check(t)
				r.skip(t)
				see := newWitness(t)
				owner := startOwner(t, dir, nil, append(r.descend(see.dir), step{Do: "hang"})...)
				who := reported(t, see.dir+"/id")
				if left, err := StaleProcesses(owner.Process.Pid); len(left) > 0 || err != nil {
					t.Errorf("of a live owner: %v, %v", left, err)
				}
				kill(owner)
				ended, survived, err := EndStaleProcesses(t.Context(), owner.Process.Pid)
				if len(survived) > 0 || err != nil {
					t.Errorf("survived: %v, %v", survived, err)
				}
				ours := func(l StaleProcess) bool {
					return l.PID == who.PID && l.Owner == owner.Process.Pid && slices.Contains(l.Names, filepath.Base(executable()))
				}
				if !slices.ContainsFunc(ended, ours) {
					t.Errorf("ended %+v, want %d of %d among them", ended, who.PID, owner.Process.Pid)
				}
				see.check(t)
				if left, err := StaleProcesses(owner.Process.Pid); len(left) > 0 || err != nil {
					t.Errorf("left: %v, %v", left, err)
				}
			})
		})
	}
	all.Wait()
}

func TestStaleProcessesMayEndByThemselves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id, cleaned := filepath.Join(dir, "id"), filepath.Join(dir, "cleaned")
	owner := startOwner(t, dir, nil, step{Do: "spawn", Child: &child{Session: true, Steps: []step{
		{Do: "clean", Text: cleaned}, {Do: "report", Text: id}, {Do: "hang"},
	}}}, step{Do: "hang"})
	reported(t, id)
	kill(owner)
	if ended, survived, err := EndStaleProcesses(t.Context(), owner.Process.Pid); len(ended) == 0 || len(survived) > 0 || err != nil {
		t.Errorf("got %v, %v, %v", ended, survived, err)
	}
	if _, err := os.Stat(cleaned); err != nil {
		t.Error("it was not asked to end:", err)
	}
}

// Processes of a nested run are left to the outer run while it lives, and end with
// it.
func TestStaleProcessesOfNestedRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := func(name string) string { return filepath.Join(dir, name) }
	see := newWitness(t)
	inner := append(restlessAgents["deaf to SIGTERM"].descend(see.dir), step{Do: "hang"})
	outer := startOwner(t, dir, nil,
		step{Do: "spawn", Child: &child{Steps: []step{{Do: "report", Text: named("inner")}, {Do: "nest", Child: &child{Steps: inner}}}}},
		step{Do: "hang"})
	left := reported(t, see.dir+"/id")
	innerOwner := reported(t, named("inner"))
	innerOwner.kill()
	if !testwait.Poll(func() bool { return !innerOwner.alive() }) {
		t.Fatal("the inner owner does not end")
	}
	if ended, _, err := EndStaleProcesses(t.Context(), innerOwner.PID); len(ended) > 0 || err != nil || !left.alive() {
		t.Errorf("with a live outer owner: ended %v, %v", ended, err)
	}
	kill(outer)
	if _, survived, err := EndStaleProcesses(t.Context(), outer.Process.Pid); len(survived) > 0 || err != nil {
		t.Errorf("survived: %v, %v", survived, err)
	}
	see.check(t)
}

// What runs within the stale processes of a dead owner does not end them.
func TestStaleProcessesExcludeTheCaller(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id, ended := filepath.Join(dir, "id"), filepath.Join(dir, "ended")
	owner := startOwner(t, dir, nil, step{Do: "spawn", Child: &child{Session: true, Steps: []step{
		{Do: "spawn", Child: &child{Session: true, Steps: []step{{Do: "report", Text: id}, {Do: "hang"}}}},
		{Do: "await", Text: filepath.Join(dir, "killed")},
		{Do: "sweep", Text: ended},
		{Do: "hang"},
	}}}, step{Do: "hang"})
	other := reported(t, id)
	kill(owner)
	check(os.Mkdir(filepath.Join(dir, "killed"), 0o700))
	await(ended)
	if text, err := os.ReadFile(ended); string(text) != "[]" || err != nil || !other.alive() {
		t.Errorf("ended %s, %v; the other process is alive: %v", text, err, other.alive())
	}
	if _, survived, err := EndStaleProcesses(t.Context(), owner.Process.Pid); len(survived) > 0 || err != nil || other.alive() {
		t.Errorf("survived: %v, %v", survived, err)
	}
}

// clean makes SIGTERM make a directory and end this process.
func clean(s step) {
	trapWith(func() {
		check(os.Mkdir(s.Text, 0o700))
		os.Exit(0)
	})
}

// sweep ends the stale processes of the owner of this process and writes a file.
func sweep(s step) {
	o, _ := parseEntry(os.Getenv(TagVariable))
	ended, _, err := EndStaleProcesses(testContext, o.pid)
	check(err)
	check(os.WriteFile(s.Text+".new", fmt.Append(nil, ended), 0o600))
	check(os.Rename(s.Text+".new", s.Text))
}

func TestStaleProcessesInATable(t *testing.T) {
	t.Parallel()
	const absent = 1 << 22 // no such PID can exist
	own, _ := parseOwner(owner())
	tag := func(boot, namespace string, pid int, born uint64) string {
		return fmt.Sprintf("%s:%s:%d:%d:0123456789abcdef", boot, namespace, pid, born)
	}
	dead := tag(own.boot, own.namespace, absent+500, 1000)
	live := tag(own.boot, own.namespace, own.pid, own.born)
	at := func(offset int, p process) process { return inTable(absent+offset, 1000, p) }
	for name, test := range map[string]struct {
		owner  int
		leader int // what Owner is, by default that of dead
		table  []process
		want   []int // offsets
	}{
		"dead owner":                       {table: []process{at(1, process{tag: dead})}, want: []int{1}},
		"dead owner whose PID another has": {leader: own.pid, table: []process{at(1, process{tag: tag(own.boot, own.namespace, own.pid, own.born-1), born: own.born})}, want: []int{1}},
		"live owner":                       {table: []process{at(1, process{tag: live})}},
		"live owner outside":               {table: []process{at(1, process{tag: live + "," + dead})}},
		"live owner inside":                {table: []process{at(1, process{tag: dead + "," + live})}},
		"all dead":                         {table: []process{at(1, process{tag: dead + "," + tag(own.boot, own.namespace, absent+501, 1000)})}, want: []int{1}},
		"another boot":                     {table: []process{at(1, process{tag: tag("0", own.namespace, absent, 1000)})}},
		"no boot":                          {table: []process{at(1, process{tag: tag("", own.namespace, absent, 1000)})}},
		"another PID namespace":            {table: []process{at(1, process{tag: tag(own.boot, "1", absent, 1000)})}},
		"another boot inside":              {table: []process{at(1, process{tag: dead + "," + tag("0", own.namespace, absent, 1000)})}},
		"something else":                   {table: []process{at(1, process{tag: "mine"}), at(2, process{tag: dead[:len(dead)-18]}), at(3, process{tag: dead + ","})}},
		"older than the owner":             {table: []process{at(1, process{tag: dead, born: 999})}},
		"another user":                     {table: []process{at(1000, process{tag: dead})}},
		"zombie":                           {table: []process{at(1, process{tag: dead, dead: true})}},
		"the owner asked for":              {owner: absent + 500, table: []process{at(1, process{tag: dead})}, want: []int{1}},
		"another owner than asked for":     {owner: absent + 7, table: []process{at(1, process{tag: dead})}},
		"child":                            {table: []process{at(1, process{parent: absent + 2}), at(2, process{tag: dead})}, want: []int{1, 2}},
		"child of a zombie":                {table: []process{at(1, process{parent: absent + 2}), at(2, process{tag: dead, dead: true})}, want: []int{1}},
		"child with a live owner":          {table: []process{at(1, process{parent: absent + 2, tag: live}), at(2, process{tag: dead})}, want: []int{2}},
		"child of another user":            {table: []process{at(1000, process{parent: absent + 2}), at(2, process{tag: dead})}, want: []int{2}},
		"session":                          {table: []process{at(1, process{session: absent + 77}), at(2, process{tag: dead, session: absent + 77})}, want: []int{1, 2}},
		"session that is older":            {table: []process{at(1, process{session: absent + 77, born: 999}), at(2, process{tag: dead, session: absent + 77})}, want: []int{2}},
		"session of this process":          {table: []process{at(1, process{session: ownSessionID}), at(2, process{tag: dead, session: ownSessionID})}},
		"nothing in common":                {table: []process{at(1, process{mark: 8, session: absent + 78}), at(2, process{tag: dead, mark: 7, session: absent + 77})}, want: []int{2}},
		"copied tag below a live owner":    {table: []process{at(1, process{parent: absent + 2, tag: dead}), at(2, process{tag: live})}},
		"copied tag in a live session":     {table: []process{at(1, process{session: absent + 2, tag: dead}), at(2, process{session: absent + 2, tag: live})}},
		"copied tag, adopted by its owner": {table: []process{at(1, process{parent: own.pid, tag: dead, born: own.born}), at(2, process{tag: live})}},
		"ancestor of this process": {table: []process{
			{pid: own.pid, parent: absent + 2, born: own.born}, at(2, process{tag: dead, parent: absent + 3}), at(3, process{tag: dead}),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStaleSearch(test.owner)
			l.same = func(pid int) bool { return pid < absent+1000 }
			var got []int
			for _, m := range l.members(test.table) {
				if m.Owner != cmp.Or(test.leader, absent+500) {
					t.Errorf("owner %d", m.Owner)
				}
				got = append(got, m.PID-absent)
			}
			slices.Sort(got)
			if text := diff.Diff(test.want, got); text != "" {
				t.Error(text)
			}
		})
	}
}

// A process that was found to be stale stays stale when the evidence is gone.
func TestStaleProcessesAreRemembered(t *testing.T) {
	t.Parallel()
	own, _ := parseOwner(owner())
	l := newStaleSearch(0)
	l.same = func(int) bool { return true }
	const absent = 1 << 22
	dead := fmt.Sprintf("%s:%s:%d:10:0", own.boot, own.namespace, absent+500)
	l.members([]process{inTable(absent, 20, process{tag: dead}), inTable(absent+1, 20, process{parent: absent})})
	got := l.members([]process{inTable(absent+1, 20, process{parent: 1}), inTable(absent, 30, process{})})
	if len(got) != 1 || got[0].PID != absent+1 {
		t.Errorf("got %+v", got)
	}
}

// The processes that a scan shows are killed, however long the scan takes.
func TestStaleProcessesAreKilledHoweverLongASearchTakes(t *testing.T) {
	t.Parallel()
	see := newWitness(t)
	owner := startOwner(t, see.dir, nil, append(restlessAgents["deaf to SIGTERM"].descend(see.dir), step{Do: "hang"})...)
	reported(t, see.dir+"/id")
	kill(owner)
	l := newStaleSearch(owner.Process.Pid)
	left, err := l.until(t.Context(), -time.Hour, func(left []StaleProcess) {
		for _, one := range left {
			signalStale(one, unix.SIGKILL)
		}
	})
	if len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	see.check(t)
}

// A program that has to end waits neither for stale processes nor for the time they get.
func TestEndingStaleProcessesEndsWithItsContext(t *testing.T) {
	t.Parallel()
	see := newWitness(t)
	owner := startOwner(t, see.dir, nil, append(restlessAgents["deaf to SIGTERM"].descend(see.dir), step{Do: "hang"})...)
	reported(t, see.dir+"/id")
	kill(owner)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, survived, err := EndStaleProcesses(ctx, owner.Process.Pid); len(survived) == 0 || err != nil {
		t.Errorf("%d are left, %v", len(survived), err)
	}
	if _, survived, err := EndStaleProcesses(t.Context(), owner.Process.Pid); len(survived) > 0 || err != nil {
		t.Errorf("%d are left in the end, %v", len(survived), err)
	}
}
