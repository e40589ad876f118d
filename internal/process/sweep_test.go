package process

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/testwait"
)

// fugitives are the ways in which a descendant gets out of sight. Each returns
// the steps of an agent that starts one, which holds the agent's output open,
// ignores SIGTERM, writes its id into file and then performs last.
var fugitives = map[string]func(dir, file string, last ...step) []step{
	"child": func(_, file string, last ...step) []step {
		return []step{{Do: "spawn", Child: &child{Steps: stay(file, last)}}, {Do: "await", Text: file}}
	},
	"session": func(_, file string, last ...step) []step {
		return []step{{Do: "spawn", Child: &child{Session: true, Steps: stay(file, last)}}, {Do: "await", Text: file}}
	},
	"orphan": func(dir, file string, last ...step) []step {
		return orphan(dir, file, child{Steps: last})
	},
	"daemon": func(dir, file string, last ...step) []step {
		return orphan(dir, file, child{Session: true, Steps: last})
	},
	"daemon without environment": func(dir, file string, last ...step) []step {
		return orphan(dir, file, child{Session: true, Cleared: true, Steps: last})
	},
}

func stay(file string, last []step) []step {
	return append([]step{{Do: "ignore"}, {Do: "report", Text: file}}, last...)
}

// orphan starts c by way of a process in another session that ends at once.
func orphan(dir, file string, c child) []step {
	between := filepath.Join(dir, "between")
	c.Steps = append([]step{{Do: "outlive", Text: between}}, stay(file, c.Steps)...)
	return []step{
		{Do: "marked"},
		{Do: "spawn", Child: &child{Session: true, Steps: []step{
			{Do: "report", Text: between},
			{Do: "spawn", Child: &c},
		}}},
		{Do: "await", Text: file},
	}
}

func eachFugitive(t *testing.T, test func(t *testing.T, steps func(file string, last ...step) []step)) {
	for name, fugitive := range fugitives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && strings.Contains(name, "without environment") {
				t.Skip("needs marks, which only Linux has")
			}
			dir := t.TempDir()
			test(t, func(file string, last ...step) []step { return fugitive(dir, file, last...) })
		})
	}
}

func TestWhatIsLeftBehindAfterAnExitIsKilled(t *testing.T) {
	t.Parallel()
	eachFugitive(t, func(t *testing.T, steps func(string, ...step) []step) {
		file := filepath.Join(t.TempDir(), "id")
		all := append(steps(file, step{Do: "hang"}), step{Do: "print", Text: "done"}, step{Do: "exit", N: 2})
		exit, stdout, _ := result(t, agent(t, all...))
		if exit != (Exit{Code: 2, Swept: 1}) || stdout != "done" {
			t.Errorf("got %+v, %q", exit, stdout)
		}
		if reported(t, file).alive() {
			t.Error("it is alive")
		}
	})
}

func TestStopEndsAllDescendants(t *testing.T) {
	t.Parallel()
	eachFugitive(t, func(t *testing.T, steps func(string, ...step) []step) {
		file := filepath.Join(t.TempDir(), "id")
		all := append([]step{{Do: "trap", Text: "bye", N: 3}}, steps(file, step{Do: "hang"})...)
		s := agent(t, append(all, step{Do: "hang"})...)
		s.Settle = 10 * time.Millisecond
		out := &strings.Builder{}
		s.Stdout = out
		p, err := Start(soon(t), s)
		if err != nil {
			t.Fatal(err)
		}
		who := reported(t, file)
		p.Stop()
		exit, err := p.Wait()
		if err != nil || exit != (Exit{Code: 3, Stopped: true, Swept: 1}) || out.String() != "bye" {
			t.Errorf("got %+v, %v, %q", exit, err, out)
		}
		if who.alive() {
			t.Error("it is alive")
		}
	})
}

func TestProcessThatIgnoresTheRequestIsKilled(t *testing.T) {
	t.Parallel()
	s := agent(t, step{Do: "ignore"}, step{Do: "print", Text: "up"}, step{Do: "hang"})
	s.Grace = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(soon(t))
	s.Stdout = writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
	exit, err := Run(ctx, s)
	if err != nil || exit != (Exit{Code: -1, Signal: "SIGKILL", Stopped: true}) {
		t.Errorf("got %+v, %v", exit, err)
	}
}

func TestDescendantsMayEndByThemselves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first step
		grace time.Duration
		want  Exit
	}{
		// Grace and settle end as soon as there is nothing to wait for.
		"of a process that ends":      {step{Do: "print"}, time.Hour, Exit{Code: -1, Signal: "SIGTERM", Stopped: true}},
		"of a process that is killed": {step{Do: "ignore"}, 20 * time.Millisecond, Exit{Code: -1, Signal: "SIGKILL", Stopped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSettle(t, test.first, test.grace, test.want)
		})
	}
}

func testSettle(t *testing.T, first step, grace time.Duration, want Exit) {
	dir := t.TempDir()
	leader, file, cleaned := filepath.Join(dir, "leader"), filepath.Join(dir, "id"), filepath.Join(dir, "cleaned")
	s := agent(t,
		first,
		step{Do: "report", Text: leader},
		step{Do: "spawn", Child: &child{Session: true, Steps: []step{
			{Do: "report", Text: file},
			{Do: "outlive", Text: leader},
			{Do: "mkdir", Text: cleaned},
		}}},
		step{Do: "hang"})
	s.Grace, s.Settle = grace, time.Hour
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	reported(t, file)
	p.Stop()
	if exit, err := p.Wait(); err != nil || exit != want {
		t.Errorf("got %+v, %v", exit, err)
	}
	await(cleaned)
}

func TestWithoutProcessTableTheGroupIsEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	steps := fugitives["child"]("", file, step{Do: "hang"})
	p, err := Start(soon(t), agent(t, append(steps, step{Do: "hang"})...))
	if err != nil {
		t.Fatal(err)
	}
	who := reported(t, file)
	p.run.tables = &sharedTable{read: func(horizon, marks) ([]process, error) { return nil, errNoProcess }}
	p.Stop()
	if exit, err := p.Wait(); err != nil || exit != (Exit{Code: -1, Signal: "SIGTERM", Stopped: true}) {
		t.Errorf("got %+v, %v", exit, err)
	}
	if !testwait.Poll(func() bool { return !who.alive() }) {
		t.Error("it is alive")
	}
}

// A process that belongs to the run only by its parent is recorded while it has one.
func TestDescendantsAreRecordedBeforeTheStop(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	s := agent(t,
		step{Do: "spawn", Child: &child{Session: true, Cleared: true, Steps: stay(file, []step{{Do: "hang"}})}},
		step{Do: "hang"})
	s.Settle = -1
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	who := reported(t, file)
	runs.mu.Lock()
	delete(runs.marks, p.run.mark)
	runs.mu.Unlock()
	p.run.mark = 0
	p.Stop()
	if exit, err := p.Wait(); err != nil || exit.Swept != 1 || who.alive() {
		t.Errorf("got %+v, %v, alive %v", exit, err, who.alive())
	}
}

func TestRunsLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	ended := startHung(t, first)
	other := startHung(t, second)
	stranger := fake([]step{{Do: "hang"}})
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	a, b := reported(t, first), reported(t, second)
	ended.Stop()
	if exit, err := ended.Wait(); err != nil || exit.Swept != 1 || a.alive() {
		t.Errorf("got %+v, %v, alive %v", exit, err, a.alive())
	}
	if !b.alive() {
		t.Error("a descendant of another run was ended")
	}
	if err := stranger.Process.Kill(); err != nil {
		t.Error("a child that is of no run was ended:", err)
	}
	stranger.Wait()
	other.Stop()
	if exit, err := other.Wait(); err != nil || exit.Swept != 1 || b.alive() {
		t.Errorf("got %+v, %v, alive %v", exit, err, b.alive())
	}
}

// startHung starts an agent that waits for ever, with a daemon that ignores
// SIGTERM and reports to file.
func startHung(t *testing.T, file string) *Process {
	t.Helper()
	steps := fugitives["daemon"](t.TempDir(), file, step{Do: "hang"})
	s := agent(t, append(steps, step{Do: "hang"})...)
	s.Settle = 10 * time.Millisecond
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A tag is a claim, which a process with another parent and session can copy.
func TestCopiedTagDoesNotRecruit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	p := startHung(t, file)
	reported(t, file)
	tags := []string{p.run.entry, "outer," + p.run.entry, p.run.entry + ",inner", p.run.entry + "0", "outer", ""}
	dir := t.TempDir()
	type outsider struct {
		tag string
		id  id
		end func()
	}
	var all []outsider
	for _, tag := range tags {
		file := filepath.Join(dir, tag+"-")
		cmd := fake([]step{{Do: "report", Text: file}, {Do: "hang"}})
		cmd.Env = []string{"X=" + TagVariable + "=" + p.run.entry, TagVariable + "=" + tag}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, outsider{tag, reported(t, file), func() { cmd.Process.Kill(); cmd.Wait() }})
	}
	p.Stop()
	p.Wait()
	for _, o := range all {
		if !o.id.alive() {
			t.Errorf("tag %q: it was ended", o.tag)
		}
		o.end()
	}
}

func TestNestedRunsAreFoundByTheOuterOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "id")
	inner := append(fugitives["daemon"](dir, file, step{Do: "hang"}), step{Do: "hang"})
	s := agent(t, step{Do: "nest", Child: &child{Steps: inner}})
	s.Settle = 10 * time.Millisecond
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	who := reported(t, file)
	p.Stop()
	exit, err := p.Wait()
	if err != nil || exit.Survived != 0 || exit.Swept == 0 || who.alive() {
		t.Errorf("got %+v, %v, alive %v", exit, err, who.alive())
	}
}
