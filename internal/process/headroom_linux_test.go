package process

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	actions["limit"] = limitUser
	actions["crowd"] = crowd
	actions["crowded"] = crowded
	actions["kill all"] = func(step) { check(unix.Kill(-1, unix.SIGKILL)) }
}

// An agent that starts processes until it is refused more cannot keep its owner from
// ending all of them: neither where it started them as its own, nor as orphans.
func TestAgentThatUsesUpProcessesIsEnded(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "crowd-") // one of the test's own is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	if out, err := exec.Command("cp", executable(), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	as := func(steps ...step) *exec.Cmd {
		c := exec.Command(program, fakeArgs(steps)...)
		c.Dir, c.Env = dir, []string{"GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2"}
		return c
	}
	// The limit does not hold for the superuser, who becomes a user of whom there
	// is nothing else.
	if os.Getuid() == 0 {
		uid := uint32(1_000_000 + os.Getpid())
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(program, 0o755), os.Chown(dir, int(uid), int(uid))); err != nil {
			t.Fatal(err)
		}
		user := as
		as = func(steps ...step) *exec.Cmd {
			c := user(steps...)
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			return c
		}
		t.Cleanup(func() { _ = as(step{Do: "kill all"}).Run() })
	}
	if out, err := as(step{Do: "limit", N: 100}, step{Do: "crowded"}).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// limitUser limits the processes of the user to N more than there are.
func limitUser(s step) {
	n := ownTasks() + uint64(s.N)
	check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}))
}

// crowded ends an agent that uses up the processes of the user.
func crowded(step) {
	check(BecomeSubreaper(true))
	p, err := Start(testContext, Spec{
		Path: executable(), Args: fakeArgs([]step{{Do: "marked"}, {Do: "ignore"}, {Do: "crowd", Text: "full"}}),
		Env: os.Environ(), Dir: filepath.Dir(executable()), Stderr: os.Stderr, Grace: -1, Settle: -1,
	})
	check(err)
	await("full")
	var asleep, over sync.WaitGroup
	asleep.Add(20)
	for range 20 { // each needs a thread
		over.Go(func() {
			runtime.LockOSThread()
			asleep.Done()
			asleep.Wait()
		})
	}
	over.Wait()
	p.Stop()
	if exit, err := p.Wait(); err != nil || exit.Swept < 20 || exit.Survived > 0 || hasChildren() {
		wrong("got %+v, %v", exit, err)
	}
}

// crowd forks until that fails, every other child in a separate session, and then
// makes a directory. All wait for a minute. It makes only raw system calls meanwhile,
// because the Go runtime may start a thread during others, and ends when it is refused one.
//
//go:norace
func crowd(s step) {
	full, err := unix.BytePtrFromString(s.Text)
	check(err)
	here := unix.AT_FDCWD
	for i := 0; ; i++ {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			break
		}
		if pid == 0 {
			if i%2 == 0 {
				unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			}
			forkPulse(0)
		}
		// A child that has not left the group yet would be killed with it, not swept.
		for leader := uintptr(0); i%2 == 0 && leader != pid; {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			leader, _, _ = unix.RawSyscall(unix.SYS_GETSID, pid, 0, 0)
		}
	}
	unix.RawSyscall(unix.SYS_MKDIRAT, uintptr(here), uintptr(unsafe.Pointer(full)), 0o700)
	forkPulse(0)
}

func TestLimitOfAgents(t *testing.T) {
	t.Parallel()
	const none = math.MaxUint64
	for name, test := range map[string]struct {
		limit, used, room, want uint64
	}{
		"limit of the user":      {60_000, 500, none, 60_000 - reserve},
		"limit of the system":    {60_000, 500, 10_000, 10_500 - reserve},
		"no limit of the user":   {unix.RLIM_INFINITY, 500, 10_000, 10_500 - reserve},
		"system above the user":  {2_000, 500, 10_000, 2_000 - reserve},
		"little room":            {400, 300, none, 375},
		"almost none":            {400, 397, none, 400},
		"none":                   {400, 400, none, 0},
		"over it":                {400, 900, none, 0},
		"no limit":               {unix.RLIM_INFINITY, 500, none, 0},
		"the system is used up":  {60_000, 500, 0, 0},
		"more than fits, in sum": {60_000, 2, none - 1, 60_000 - reserve},
	} {
		got, ok := lessReserve(test.limit, test.used, test.room)
		if got != test.want || ok != (test.want > 0) {
			t.Errorf("%s: %d, %v; want %d", name, got, ok, test.want)
		}
	}
	for name, test := range map[string]struct {
		limit, room, total uint64
		want               bool
	}{
		"far from both":       {60_000, 30_000, 500, false},
		"no room known":       {60_000, none, 500, false},
		"no limit":            {unix.RLIM_INFINITY, 30_000, 500, false},
		"the last that fits":  {60_000, 10_000, 2_500 - reserve, false},
		"many in the system":  {60_000, 10_000, 2_501 - reserve, true},
		"little room":         {60_000, 400, 99, true},
		"no room":             {60_000, 0, 500, true},
		"a limit that is low": {600, none, 500, true},
		"total not known":     {60_000, none, none, true},
	} {
		got := mustCount(test.limit, test.room, test.total)
		if got != test.want {
			t.Errorf("%s: counted: %v", name, got)
		}
		if limit, _ := lessReserve(test.limit, 0, test.room); !got && test.room != none && limit-test.total < test.room/4*3 {
			t.Errorf("%s: an agent gets %d of %d", name, limit-test.total, test.room)
		}
	}
	small, whole := group{room: 120, tasks: 10}, group{room: 500, tasks: 90}
	for name, test := range map[string]struct {
		groups     []group
		used, want uint64
	}{
		"no group":                   {nil, 100, 10_000},
		"one with most of the tasks": {[]group{whole}, 100, 500},
		"one with few of them":       {[]group{small}, 100, 10_000},
		"one in the other":           {[]group{small, whole}, 100, 500},
		"not counted":                {[]group{small, whole}, 0, 120},
	} {
		if got := leastRoom(10_000, test.groups, test.used); got != test.want {
			t.Errorf("%s: room for %d, want %d", name, got, test.want)
		}
	}
	if n := ownTasks(); n < 2 {
		t.Errorf("this user has %d processes and threads", n)
	}
	if room, _, total := systemRoom(); room == 0 || total < 2 {
		t.Errorf("room for %d, %d exist", room, total)
	}
}
