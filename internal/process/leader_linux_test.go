package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/internal/testwait"
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
	if !testwait.Poll(func() bool { return !agent.alive() }) {
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
	c, thread := make(chan started), make(chan int, 1)
	var start func()
	start = func() {
		runtime.LockOSThread()                    // the thread ends with the goroutine
		if syscall.Gettid() == syscall.Getpid() { // the first thread does not end
			go start()
			<-t.Context().Done()
			runtime.UnlockOSThread()
			return
		}
		p, err := Start(t.Context(), s)
		thread <- syscall.Gettid()
		c <- started{p, err}
	}
	go start()
	got := <-c
	if got.err != nil {
		t.Fatal(got.err)
	}
	who := reported(t, file)
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	testwait.Until(t, "the end of the thread", func() (error, bool) {
		_, err := os.Stat(task)
		return err, errors.Is(err, fs.ErrNotExist)
	})
	if !who.alive() {
		t.Error("it is not alive")
	}
	got.p.Stop()
	got.p.Wait()
}
