package process

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/busdk/bus-agent/internal/unix"
)

// Detached describes a program that outlives the one that starts it: it runs in a new
// session without a terminal and gets no signal when its parent ends. It is not a run,
// so it is not swept.
type Detached struct {
	Path  string   // absolute
	Args  []string // with the name that it is called by
	Env   []string
	Dir   string
	Input []byte   // what it reads on standard input
	Log   *os.File // its standard output and standard error
}

// ReportFile is the descriptor on which a detached program reports to the one
// that started it.
const ReportFile = 3

// A DetachedProcess is a detached program that was started.
type DetachedProcess struct {
	PID int
	// Report is what the program writes to ReportFile. It ends when the program
	// closes it or ends.
	Report *os.File
}

// StartDetached starts d.
func StartDetached(d Detached) (*DetachedProcess, error) {
	input, err := inheritedFile(d.Input)
	if err != nil {
		return nil, fmt.Errorf("pass input to the process: %w", err)
	}
	defer input.Close()
	report, far, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	pid, err := unix.StartSession(d.Path, d.Args, &syscall.ProcAttr{
		Dir: d.Dir, Env: d.Env,
		Files: []uintptr{input.Fd(), d.Log.Fd(), d.Log.Fd(), far.Fd()},
	})
	runtime.KeepAlive(d.Log)
	if err != nil {
		report.Close()
		return nil, err
	}
	return &DetachedProcess{PID: pid, Report: report}, nil
}

// Stop asks the program to end.
func (d *DetachedProcess) Stop() { _ = unix.Kill(d.PID, unix.SIGTERM) } // it is not reaped, so the PID is its own

// Wait waits for the end of the program.
func (d *DetachedProcess) Wait() {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(d.PID, &status, 0); err != unix.EINTR {
			return
		}
	}
}
