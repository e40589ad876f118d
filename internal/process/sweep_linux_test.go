package process

import (
	"path/filepath"
	"testing"

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
				{Do: "chain", N: 20_000},
			}}},
			step{Do: "await", Text: file}))
		if exit.Code != 0 || exit.Survived != 0 {
			t.Errorf("got %+v", exit)
		}
		// The end of the file is there once nobody has it open for writing.
		if n, err := unix.Read(held, make([]byte, 1)); n != 0 || err != nil {
			t.Fatalf("descendants run on: %d, %v", n, err)
		}
	}
}
