package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 7 8 9 34816 10 4194560 1 2 3 4 5 6 7 8 20 0 %T 0 4711 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 %E 1 0 0"
	stat := func(name, state, threads, exitSignal string) string {
		return "42 (" + name + ") " + state + strings.NewReplacer("%T", threads, "%E", exitSignal).Replace(rest)
	}
	alive := process{pid: 42, parent: 7, session: 9, born: 4711}
	dead := alive
	dead.dead = true
	for name, test := range map[string]struct {
		stat string
		want process
	}{
		"alive":                {stat("sh", "S", "1", "17"), alive},
		"name with a bracket":  {stat("a) R 1 2 3", "S", "1", "17"), alive},
		"zombie":               {stat("sh", "Z", "1", "17"), dead},
		"only its threads run": {stat("sh", "Z", "2", "17"), alive},
		"dead":                 {stat("sh", "X", "1", "17"), dead},
		"thread":               {stat("sh", "S", "2", "-1"), process{}},
		"cut":                  {stat("sh", "S", "1", "17")[:60], process{}},
		"empty":                {"", process{}},
	} {
		got, err := parseStat(42, []byte(test.stat))
		if err != nil {
			got = process{}
		}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// Both ways to read the table show the same processes.
func TestTableShowsWhatWasBornSince(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	p := startHung(t, file)
	who := reported(t, file)
	for name, h := range map[string]horizon{
		"listing": {born: p.run.from.born},
		"range":   {born: p.run.from.born, pid: p.Pid(), at: now().at},
	} {
		table, err := readTable(h, nil)
		if err != nil {
			t.Fatal(err)
		}
		var pids []int
		for _, found := range table {
			if found.born < h.born {
				t.Errorf("%s: %d is older", name, found.pid)
			}
			if slices.Contains(pids, found.pid) {
				t.Errorf("%s: %d occurs twice", name, found.pid)
			}
			pids = append(pids, found.pid)
		}
		if !slices.Contains(pids, who.PID) {
			t.Errorf("%s: got %v, want %d too", name, pids, who.PID)
		}
		if slices.Contains(pids, 1) || slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: got older ones", name)
		}
	}
	p.Stop()
	p.Wait()
}

func TestSignalSparesAReusedPID(t *testing.T) {
	t.Parallel()
	cmd := fake([]step{{Do: "hang"}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	m, err := readProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	gone := m
	gone.born--
	if signalProcess(gone, unix.SIGKILL) {
		t.Error("signalled a process with another start time")
	}
	if who := (id{m.pid, m.born}); !who.alive() {
		t.Error("it is not alive")
	}
	if !signalProcess(m, unix.SIGKILL) {
		t.Error("did not signal the member")
	}
}

func TestLargeEnvironmentIsReadWhole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	cmd := fake([]step{{Do: "report", Text: file}, {Do: "hang"}})
	cmd.Env = append(slices.Repeat([]string{"A=" + strings.Repeat("x", 100<<10)}, 5), TagVariable+"=found")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	who := reported(t, file)
	r := reader{}
	r.add(who.PID)
	if len(r.table) != 1 || r.table[0].tag != "found" {
		t.Errorf("got %+v", r.table)
	}
}

func TestMarkDiffersFromALimit(t *testing.T) {
	t.Parallel()
	r := newRun(nil)
	if !isMark(r.mark) {
		t.Errorf("%x is not a mark", r.mark)
	}
	cmd := fake([]step{{Do: "hang"}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	pid := cmd.Process.Pid
	if !setMark(pid, r.mark) || readMark(pid) != r.mark {
		t.Errorf("got %x, want %x", readMark(pid), r.mark)
	}
	if err := unix.Prlimit(pid, markResource, &unix.Rlimit{Cur: 1024, Max: hardLimit()}, nil); err != nil {
		t.Fatal(err)
	}
	if got := readMark(pid); got != 0 {
		t.Errorf("got the mark %x", got)
	}
	for _, limit := range []uint64{0, 1, 1024, 1 << 40, 1<<63 - 1, unix.RLIM_INFINITY} {
		if isMark(limit) {
			t.Errorf("%x is a mark", limit)
		}
	}
}

func TestScanFindsProcessesBornDuringIt(t *testing.T) {
	t.Parallel()
	last, ok := lastPID()
	if !ok {
		t.Fatal("this kernel does not report the PID that it gave out last")
	}
	cmd := fake([]step{{Do: "hang"}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var r reader
	if err := r.catchUp(last + 1); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.table, func(p process) bool { return p.pid == cmd.Process.Pid }) {
		t.Errorf("got %v, want %d", r.table, cmd.Process.Pid)
	}
}

func TestEarlyDescendantsAreMarked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	r := newRun(nil)
	r.from = now()
	cmd := fake([]step{
		{Do: "spawn", Child: &child{Session: true, Cleared: true, Steps: []step{{Do: "report", Text: file}, {Do: "hang"}}}},
		{Do: "hang"},
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	who := reported(t, file)
	r.setLeader(cmd.Process.Pid)
	if readMark(cmd.Process.Pid) != r.mark || readMark(who.PID) != r.mark {
		t.Errorf("got %x and %x, want %x", readMark(cmd.Process.Pid), readMark(who.PID), r.mark)
	}
	who.kill()
	cmd.Process.Kill()
}

// A scan for runs leaves out what was started itself, which is never a descendant;
// one for all shows it.
func TestLookForRunsLeavesOutLeaders(t *testing.T) {
	t.Parallel()
	p := startHung(t, filepath.Join(t.TempDir(), "id"))
	for name, test := range map[string]struct {
		wanted marks
		shown  int
	}{
		"run": {marks{p.run.mark: true}, 0},
		"all": {nil, 1},
	} {
		r := reader{wanted: test.wanted}
		r.add(p.Pid())
		if len(r.table) != test.shown {
			t.Errorf("%s: got %+v", name, r.table)
		}
	}
	p.Stop()
	p.Wait()
}
