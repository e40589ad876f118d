package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	// "copy mark" gives this process the mark of the one whose id is in a file.
	actions["copy mark"] = func(s step) {
		await(s.Text)
		check(unix.Prlimit(0, markResource, &unix.Rlimit{Cur: readMark(readID(s.Text).PID), Max: hardLimit()}, nil))
	}
	// "brand" gives the process whose id is in a file the mark of this process.
	actions["brand"] = func(s step) {
		await(s.Text)
		if !setMark(readID(s.Text).PID, ownMark()) {
			check(fmt.Errorf("no mark for %s", s.Text))
		}
	}
	actions["note"] = func(s step) { check(os.Mkdir(s.Text, 0o700)) }
	// "copy tag" continues as another program with the tag of the process whose id is
	// in a file.
	actions["copy tag"] = func(s step) {
		await(s.Text)
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(readID(s.Text).PID) + "/environ")
		check(err)
		check(unix.Exec(executable(), append([]string{executable()}, fakeArgs(s.Child.Steps)...), []string{TagVariable + "=" + findTag(environ), "GORACE=atexit_sleep_ms=0"}))
	}
}

// victims are processes of another program's run: its agent, a tool of that agent
// and one without environment.
func victims(t *testing.T, dir string) (owner int, check func(*testing.T)) {
	t.Helper()
	names := []string{"agent", "tool", "cleared"}
	cmd := startOwner(t, dir, nil,
		step{Do: "marked"},
		step{Do: "spawn", Child: &child{Steps: []step{{Do: "report", Text: dir + "/tool"}, {Do: "hang"}}}},
		step{Do: "spawn", Child: &child{Session: true, Cleared: true, Steps: []step{{Do: "report", Text: dir + "/cleared"}, {Do: "hang"}}}},
		step{Do: "report", Text: dir + "/agent"},
		step{Do: "hang"})
	ids := map[string]id{}
	for _, name := range names {
		ids[name] = reported(t, filepath.Join(dir, name))
	}
	t.Cleanup(func() { // also what the hostile agent made look like theirs
		kill(cmd)
		for _, id := range ids {
			id.kill()
		}
		if _, survived, err := EndStaleProcesses(context.Background(), cmd.Process.Pid); len(survived) > 0 || err != nil {
			t.Errorf("survived: %v, %v", survived, err)
		}
	})
	return cmd.Process.Pid, func(t *testing.T) {
		t.Helper()
		for name, id := range ids {
			if !id.alive() {
				t.Errorf("%s of another run was ended", name)
			}
		}
	}
}

// hostile are agents that make themselves look like another run, or another run
// look like theirs.
func hostile(dir string) map[string][]step {
	hung := func(first ...step) []step {
		return append(first, step{Do: "note", Text: dir + "/done"}, step{Do: "hang"})
	}
	spawned := func(c child, first ...step) []step {
		c.Steps = hung(first...)
		return []step{{Do: "marked"}, {Do: "spawn", Child: &c}}
	}
	return map[string][]step{
		"copies the mark itself":             append([]step{{Do: "marked"}}, step{Do: "copy mark", Text: dir + "/agent"}, step{Do: "note", Text: dir + "/done"}),
		"copies the mark":                    spawned(child{}, step{Do: "copy mark", Text: dir + "/agent"}),
		"copies the mark in its own session": spawned(child{Session: true, Cleared: true}, step{Do: "copy mark", Text: dir + "/agent"}),
		"marks the agent":                    spawned(child{}, step{Do: "brand", Text: dir + "/agent"}),
		"marks a tool":                       spawned(child{}, step{Do: "brand", Text: dir + "/tool"}),
		"marks what has no environment":      spawned(child{}, step{Do: "brand", Text: dir + "/cleared"}),
		"copies the tag":                     spawned(child{Session: true}, step{Do: "copy tag", Text: dir + "/agent", Child: &child{Steps: hung()}}),
	}
}

// A run ends only what is provably of it, whatever its agent writes on itself or
// on others, and it ends that.
func TestHostileMarksSpareTheRunsOfOthers(t *testing.T) {
	t.Parallel()
	for name := range hostile("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := agent(t, slices.Concat([]step{{Do: "report", Text: dir + "/late"}}, hostile(dir)[name], []step{{Do: "await", Text: dir + "/go"}})...)
			s.Dir = dir
			p, err := Start(soon(t), s)
			if err != nil {
				t.Fatal(err)
			}
			reported(t, dir+"/late")
			_, spared := victims(t, dir) // born after the hostile run
			await(dir + "/done")
			if err := os.Mkdir(dir+"/go", 0o700); err != nil {
				t.Fatal(err)
			}
			if exit, err := p.Wait(); err != nil || exit.Survived > 0 {
				t.Errorf("got %+v, %v", exit, err)
			}
			spared(t)
		})
	}
}

// What a dead owner left does not make doctor end the run of a live one, and goes
// itself.
func TestStaleProcessesExcludeRunsOfLiveOwners(t *testing.T) {
	t.Parallel()
	for name := range hostile("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			owner := startOwner(t, dir, nil, slices.Concat([]step{{Do: "report", Text: dir + "/late"}, {Do: "ignore"}}, hostile(dir)[name], []step{{Do: "hang"}})...)
			reported(t, dir+"/late")
			live, spared := victims(t, dir)
			await(dir + "/done")
			kill(owner)
			if _, survived, err := EndStaleProcesses(t.Context(), owner.Process.Pid); len(survived) > 0 || err != nil {
				t.Errorf("survived: %v, %v", survived, err)
			}
			spared(t)
			if ended, _, err := EndStaleProcesses(t.Context(), live); len(ended) > 0 || err != nil {
				t.Errorf("ended %v of a live owner, %v", ended, err)
			}
			spared(t)
		})
	}
}

// A process that a dead owner's run marked, and that has a parent or a session of
// others, is not left by that run.
func TestMarkOfADeadOwnerIsNotInherited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bystander := fake([]step{{Do: "report", Text: dir + "/bystander"}, {Do: "hang"}})
	bystander.Env = []string{}
	bystander.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	owner := startOwner(t, dir, nil, step{Do: "marked"}, step{Do: "brand", Text: dir + "/bystander"}, step{Do: "note", Text: dir + "/done"}, step{Do: "hang"})
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer kill(bystander)
	who := reported(t, dir+"/bystander")
	await(dir + "/done")
	kill(owner)
	if _, _, err := EndStaleProcesses(t.Context(), owner.Process.Pid); err != nil || !who.alive() {
		t.Errorf("%v; the bystander lives: %v", err, who.alive())
	}
}

// The mark of a run within this one counts, that of another does not.
func TestMarksOfNestedRuns(t *testing.T) {
	t.Parallel()
	const absent = 1 << 22
	markOf := func(pid int) uint64 {
		return uint64(markMagic | markNested | pid%markPIDs<<markPIDShift | here()<<markHereShift | 5)
	}
	inner := absent - 10
	own, _ := parseOwner(owner())
	entry := fmt.Sprintf("%s:%s:%d:1100:0", own.boot, own.namespace, inner)
	member := inTable(absent+1, 1100, process{parent: absent})
	orphan := inTable(absent+2, 1200, process{parent: 1, mark: markOf(inner)})
	for name, test := range map[string]struct {
		table []process
		want  int
	}{
		"owner is a member":        {[]process{inTable(inner, 1100, process{parent: absent}), orphan}, 2},
		"owner in a member's tag":  {[]process{inTable(member.pid, 1100, process{parent: absent, tag: "entry," + entry}), orphan}, 2},
		"born before its owner":    {[]process{inTable(inner, 1300, process{parent: absent}), orphan}, 1},
		"mark that a member bears": {[]process{inTable(member.pid, 1100, process{parent: absent, mark: orphan.mark}), orphan}, 1},
	} {
		r := run{pid: absent, from: horizon{born: 1000}, entry: "entry", mark: 7, known: map[int]uint64{}, owners: map[int]uint64{}}
		if got := r.members(test.table); len(got) != test.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// The number of a process that has ended can become that of a thread. What the
// process was is dead all the same, and what it has left is stale.
func TestThreadIsNotAProcess(t *testing.T) {
	t.Parallel()
	threads := make(chan int)
	for range 2 { // one of them may be the first thread
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			<-t.Context().Done()
		}()
	}
	for range 2 {
		id := <-threads
		if id == os.Getpid() {
			continue
		}
		if life := LifeOf(identityText(id, 1)); life != Dead {
			t.Errorf("a dead process whose number a thread has got is %v", life)
		}
		if !isDeadOwner(id, 1) {
			t.Error("what it has left is that of a live owner")
		}
		if _, err := StartedAt(id); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("its start: %v", err)
		}
	}
}
