package process

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestAgentEndsWhenThisProcessDies(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	runner := fake([]step{{Do: "nest", Child: &child{Steps: []step{{Do: "report", Text: file}, {Do: "hang"}}}}})
	runner.Dir = t.TempDir()
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	agent := reported(t, file)
	runner.Process.Kill()
	runner.Wait()
	if !eventually(func() bool { return !agent.alive() }) {
		t.Error("it is alive")
		agent.kill()
	}
}

func TestAgentOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	s := agent(t, step{Do: "report", Text: file}, step{Do: "hang"})
	type started struct {
		p   *Process
		err error
	}
	c := make(chan started)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		p, err := Start(t.Context(), s)
		c <- started{p, err}
	}()
	got := <-c
	if got.err != nil {
		t.Fatal(got.err)
	}
	who := reported(t, file)
	select {
	case <-got.p.Done():
		t.Error("it ended early")
	case <-time.After(100 * time.Millisecond): // long after the thread has ended
	}
	if !who.alive() {
		t.Error("it is not alive")
	}
	got.p.Stop()
	got.p.Wait()
}
