package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/testwait"
)

// To be a subreaper is for the whole process, so the tests are steps of another
// one. It prints what went wrong, nothing when all is well.
func init() {
	actions["adopt"] = adopt
	actions["unmark"] = unmark
	actions["adopt some"] = adoptSome
	actions["adopt all"] = adoptAll
	actions["leak"] = leak
	actions["orphans"] = orphans
	actions["overlap"] = overlap
	actions["outrun"] = outrun
}

func TestSubreaperEndsAndReapsOrphansOfItsRunsOnly(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "adopt", Text: t.TempDir()})
}

func TestLoneSubreaperNeedsNoMark(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "adopt all", Text: t.TempDir()})
}

func TestLoneSubreaperKillsOrphansOfOverlappingRuns(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "overlap", Text: t.TempDir()})
}

func TestNothingIsLeftInThisProcess(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "leak", Text: t.TempDir()})
}

func TestLoneSubreaperReapsFloodOfOrphansBeforeItLooks(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "orphans", Text: t.TempDir()})
}

func TestLoneSubreaperKillsAllItAdopts(t *testing.T) {
	t.Parallel()
	inOwnProcess(t, step{Do: "outrun", Text: t.TempDir()})
}

func inOwnProcess(t *testing.T, steps ...step) {
	t.Helper()
	cmd := fake(steps)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// wrong prints what is wrong and continues.
func wrong(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func adopt(s step) {
	check(BecomeSubreaper(false))
	dir := s.Text
	named := func(name string) string { return filepath.Join(dir, name) }

	// Of a run: a daemon that hangs, and one that ends during the run.
	check(os.Mkdir(named("hung"), 0o700))
	check(os.Mkdir(named("ended"), 0o700))
	clear := fugitives["daemon without environment"]
	steps := clear(named("hung"), named("hung/id"), step{Do: "hang"})
	steps = append(steps, clear(named("ended"), named("ended/id"))...)
	steps = append(steps, step{Do: "await", Text: named("go")})
	p, err := Start(testContext, Spec{Path: executable(), Args: fakeArgs(steps), Env: os.Environ(), Dir: dir, Stdout: &bytes.Buffer{}})
	check(err)

	// Of no run: a child that ends and is waited for late, and a daemon.
	waited := fake([]step{{Do: "report", Text: named("waited")}, {Do: "exit", N: 3}})
	check(waited.Start())
	check(os.Mkdir(named("stranger"), 0o700))
	escape := fugitives["daemon"](named("stranger"), named("stranger/id"), step{Do: "hang"})
	starter := fake(escape[1:]) // it never gets a mark
	check(starter.Run())
	stranger := readID(named("stranger/id"))
	stranger.expectParent(os.Getpid())

	await(named("hung/id"))
	hung := readID(named("hung/id"))
	hung.expectParent(os.Getpid())
	await(named("ended/id"))
	ended := readID(named("ended/id"))
	if !testwait.Poll(ended.reaped) {
		wrong("an orphan that ended is not reaped during the run")
	}
	check(os.Mkdir(named("go"), 0o700))
	exit, err := p.Wait()
	if err != nil || exit != (Exit{Swept: 1}) {
		wrong("got %+v, %v", exit, err)
	}
	if !hung.reaped() {
		wrong("the daemon is not reaped")
	}
	if !stranger.alive() {
		wrong("a daemon of no run was ended")
	}
	err = waited.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 {
		wrong("the exit of another child was taken: %v", err)
	}
	stranger.kill()
}

// adoptAll has an orphan that belongs to a run only by its parent.
func adoptAll(s step) {
	check(BecomeSubreaper(true))
	id := s.Text + "/id"
	steps := []step{
		{Do: "marked"},
		unmarkedOrphan(s.Text, id),
		{Do: "await", Text: id},
	}
	exit, err := Run(testContext, Spec{Path: executable(), Args: fakeArgs(steps), Env: os.Environ(), Dir: s.Text})
	if err != nil || exit != (Exit{Swept: 1}) {
		wrong("got %+v, %v", exit, err)
	}
	if !readID(id).reaped() {
		wrong("it is not ended and reaped")
		readID(id).kill()
	}
}

// unmarkedOrphan starts a process that belongs to a run only by its parent.
func unmarkedOrphan(dir, id string) step {
	between := dir + "/between"
	return step{Do: "spawn", Child: &child{Session: true, Steps: []step{
		{Do: "report", Text: between}, {Do: "unmark"},
		{Do: "spawn", Child: &child{Cleared: true, Session: true, Steps: []step{
			{Do: "outlive", Text: between}, {Do: "ignore"}, {Do: "report", Text: id}, {Do: "hang"},
		}}},
	}}}
}

// overlap has an orphan that belongs to a run only by its parent, and another run that
// begins before the first one ends, and ends after it.
func overlap(s step) {
	check(BecomeSubreaper(true))
	id, second := s.Text+"/id", s.Text+"/second"
	steps := []step{
		{Do: "marked"},
		unmarkedOrphan(s.Text, id),
		{Do: "await", Text: id}, {Do: "await", Text: second},
	}
	first, err := Start(testContext, Spec{Path: executable(), Args: fakeArgs(steps), Env: os.Environ(), Dir: s.Text})
	check(err)
	await(id)
	p, err := Start(testContext, Spec{Path: executable(), Args: fakeArgs([]step{{Do: "report", Text: second}, {Do: "cat"}}), Env: os.Environ(), Dir: s.Text, Interactive: true})
	check(err)
	if exit, err := first.Wait(); err != nil || exit != (Exit{}) {
		wrong("the first run: %+v, %v", exit, err)
	}
	check(p.Input().Close())
	if exit, err := p.Wait(); err != nil || exit != (Exit{Swept: 1}) {
		wrong("the second run: %+v, %v", exit, err)
	}
	if !readID(id).reaped() || hasChildren() {
		wrong("it is not ended and reaped")
		readID(id).kill()
	}
}

// orphans adopts many orphans that end, without what reaps them from time to time.
func orphans(s step) {
	check(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	isSubreaper.Store(true)
	adoptsAll.Store(true)
	const many = 100
	shell := exec.Command("/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do (: &); i=$((i+1)); done", many))
	shell.Env = []string{}
	check(shell.Run())
	alive := func() (n int) {
		list, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
		check(err)
		for _, child := range strings.Fields(string(list)) {
			if c, err := readProcess(number([]byte(child))); err == nil && !c.dead {
				n++
			}
		}
		return n
	}
	if !testwait.Poll(func() bool { return alive() == 0 }) {
		wrong("orphans that do not end")
	}
	all := reader{}
	check(all.addAll())
	for _, child := range all.table {
		if child.parent == os.Getpid() && child.dead {
			wrong("a zombie is among the processes looked at")
			break
		}
	}
	p, err := Start(testContext, Spec{Path: executable(), Args: fakeArgs([]step{{Do: "exit", N: 3}}), Env: os.Environ(), Dir: s.Text})
	check(err)
	for ended := false; !ended; {
		reapChildren()
		select {
		case <-p.Done():
			ended = true
		default:
		}
	}
	if exit, err := p.Wait(); err != nil || exit != (Exit{Code: 3}) {
		wrong("the exit of the agent was taken: %+v, %v", exit, err)
	}
}

// outrun kills trees of orphans without environment or mark through the list of
// children alone, while the agent runs.
func outrun(s step) {
	check(BecomeSubreaper(true))
	const trees = "for i in 1 2 3; do (ulimit -Sc $i; env -i setsid sh -c '(sleep 60; :); :' &); done; sleep 60"
	p, err := Start(testContext, Spec{Path: "/bin/sh", Args: []string{"-c", trees}, Env: os.Environ(), Dir: s.Text, Grace: -1})
	check(err)
	adopted := func() (n int) {
		list, _ := children()
		for _, pid := range list {
			if c, err := readProcess(pid); err == nil && !c.dead && c.session == pid && pid != p.Pid() {
				n++
			}
		}
		return n
	}
	if !testwait.Poll(func() bool { return adopted() == 3 }) {
		wrong("%d trees are adopted", adopted())
	}
	h := newHunt(time.Minute, time.Minute)
	p.run.killAdopted(h)
	if n := adopted(); n > 0 || len(h.killed) < 3 {
		wrong("%d killed, %d left", len(h.killed), n)
	}
	if agent, err := readProcess(p.Pid()); err != nil || agent.dead {
		wrong("the agent was killed")
	}
	p.Stop()
	if exit, err := p.Wait(); err != nil || exit.Survived > 0 || hasChildren() {
		wrong("got %+v, %v", exit, err)
	}
}

func adoptSome(step) {
	check(BecomeSubreaper(true))
	if adoptsAll.Load() {
		wrong("all that it adopts counts as of a run")
	}
}

// leak counts goroutines and descriptors around many runs.
func leak(s step) {
	runAll := func() {
		for range 20 {
			ok := Spec{Path: executable(), Args: fakeArgs(nil), Env: os.Environ(), Dir: s.Text,
				Stdin: "x", Stdout: &bytes.Buffer{}, Files: [][]byte{{1}}, EmptyDirs: []string{"x"}}
			if exit, err := Run(testContext, ok); err != nil || exit != (Exit{}) {
				wrong("got %+v, %v", exit, err)
			}
			bad := ok
			bad.Path = "/no/such/agent"
			if _, err := Run(testContext, bad); err == nil {
				wrong("no error")
			}
		}
	}
	runAll()         // what is opened once for all runs is not a leak
	before := held() // something of the last run may still be ending
	runAll()
	if !testwait.Poll(func() bool { now := held(); return now[0] <= before[0] && now[1] <= before[1] }) {
		wrong("held %v before and %v after", before, held())
	}
}

// unmark takes the mark off this process.
func unmark(step) {
	check(unix.Prlimit(0, markResource, &unix.Rlimit{Cur: hardLimit(), Max: hardLimit()}, nil))
}

func (i id) expectParent(pid int) {
	p, err := readProcess(i.PID)
	if err != nil || p.parent != pid {
		b, _ := json.Marshal(i)
		wrong("%s has the parent %d, want %d", b, p.parent, pid)
	}
}

// A program that had children before it was this one may adopt what is theirs.
func TestSubreaperWithOtherChildrenNeedsMarks(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/id"
	inOwnProcess(t,
		step{Do: "spawn", Child: &child{Output: os.DevNull, Steps: []step{{Do: "outlive", Text: file}}}},
		step{Do: "report", Text: file}, step{Do: "adopt some"})
}
