package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestForkingDescendantsAreCaught(t *testing.T) {
	t.Parallel()
	for range 8 { // each could be caught by chance
		dir := t.TempDir()
		file, fifo := filepath.Join(dir, "id"), filepath.Join(dir, "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		held, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(held)
		exit, _, _ := result(t, agent(t,
			step{Do: "marked"},
			step{Do: "spawn", Child: &child{Session: true, Cleared: true, Output: fifo, Steps: []step{
				{Do: "report", Text: file},
				{Do: "chain", N: 100_000},
			}}},
			step{Do: "await", Text: file}))
		if exit.Code != 0 || exit.Survived != 0 {
			t.Errorf("got %+v", exit)
		}
		// The file ends when no process has it open for writing.
		if n, err := unix.Read(held, make([]byte, 1)); n != 0 || err != nil {
			t.Fatalf("descendants run on: %d, %v", n, err)
		}
	}
}

func TestHuntContinuesWhileThereAreNewProcesses(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Second)
	h := newHunt(time.Hour, time.Hour)
	if h.over() {
		t.Error("over at once")
	}
	if h.giveUp = past; !h.over() {
		t.Error("not over without a new process")
	}
	if h.find(1, 1); h.over() {
		t.Error("over with a new process")
	}
	if h.giveUp = past; !h.over() {
		t.Error("not over with the same process")
	}
	h.giveUp = past
	if h.find(1, 1); !h.over() {
		t.Error("not over with a process that was found again")
	}
	if h.find(1, 2); h.over() {
		t.Error("over with a new process that has the PID of another")
	}
	h.find(2, 1)
	if h.end = past; !h.over() {
		t.Error("not over at the end")
	}
}

func init() { actions["starve"] = starve }

// starve runs an agent that starts the process of the file Text, and ends it when nothing
// more can be opened. It prints how many survived.
func starve(s step) {
	dir, err := os.Getwd()
	check(err)
	p, err := Start(testContext, Spec{Path: executable(), Args: fakeArgs(s.Child.Steps), Env: os.Environ(), Dir: dir, Stdout: io.Discard, Stderr: io.Discard})
	check(err)
	await(s.Text)
	var limit unix.Rlimit
	check(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur = 0
	check(unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	p.Stop()
	exit, err := p.Wait()
	check(err)
	fmt.Print(exit.Survived)
}

// What cannot be seen, because too many files are open, is not taken for gone.
func TestSurvivorsAreReportedWithoutFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "id")
	steps := append(fugitives["daemon"](dir, file, step{Do: "hang"}), step{Do: "hang"})
	exit, said, complained := result(t, agent(t, step{Do: "starve", Text: file, Child: &child{Steps: steps}}))
	if exit.Code != 0 || said != "1" {
		t.Errorf("exit code %d, %s survived, %s", exit.Code, said, complained)
	}
	if reported(t, file).alive() { // the outer run ends it
		t.Error("the process is alive")
	}
}
