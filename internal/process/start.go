package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Supported returns nil on Linux and macOS, and on other systems why nothing is started
// there.
func Supported() error {
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		return nil
	}
	return errors.New("agents run on Linux and macOS only; on " + runtime.GOOS + " the processes that they leave behind cannot be found")
}

func (s *Spec) check() error {
	switch {
	case !filepath.IsAbs(s.Path):
		return errors.New("the path of the executable is not absolute")
	case !filepath.IsAbs(s.Dir):
		return errors.New("the working directory is not an absolute path")
	}
	for i, arg := range s.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d holds a NUL byte", i+1)
		}
	}
	for _, entry := range s.Env {
		if strings.ContainsRune(entry, 0) {
			name, _, _ := strings.Cut(entry, "=")
			return fmt.Errorf("the environment variable %q holds a NUL byte", name)
		}
	}
	return nil
}

// start opens the descriptors of the child, starts it and closes the child's
// side of them.
func (p *Process) start(s Spec) (err error) {
	child := make([]*os.File, 0, 3+len(s.Files))
	defer func() {
		for _, f := range child {
			f.Close()
		}
		if err != nil {
			p.pipes.close()
		}
	}()
	if child, err = p.pipes.open(child, s); err != nil {
		return err
	}
	for _, content := range s.Files {
		f, err := inheritedFile(content)
		if err != nil {
			return fmt.Errorf("pass a file to the process: %w", err)
		}
		child = append(child, f)
	}
	p.run = newRun(s.Env)
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: p.run.environ(s.Env)}
	for _, f := range child {
		attr.Files = append(attr.Files, f.Fd())
	}
	runs.begin()
	if err := p.fork(s, attr); err != nil {
		runs.giveUp()
		return explain(err, s)
	}
	runtime.KeepAlive(child)
	runs.add(&p.run)
	return nil
}

// fork starts the process. An executable that is still open for writing, for
// example in another process that is just between fork and exec, is tried again.
func (p *Process) fork(s Spec, attr *syscall.ProcAttr) error {
	argv := append([]string{s.Path}, s.Args...)
	pause := time.Millisecond
	for {
		p.run.from = now()
		err := starter.start(func() (err error) {
			p.leader, err = forkLeader(s.Path, argv, attr)
			if err == nil {
				p.run.setLeader(p.leader.pid)
			}
			return err
		})
		if err != syscall.ETXTBSY || pause > 64*time.Millisecond {
			return err
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// explain says what is wrong where the system's word for it misleads.
func explain(err error, s Spec) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, statErr := os.Stat(s.Dir); statErr != nil || !info.IsDir() {
			return fmt.Errorf("working directory: %w", err)
		}
		if _, statErr := os.Stat(s.Path); statErr == nil {
			return fmt.Errorf("the interpreter that its first line names is missing: %w", err)
		}
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("working directory: %w", err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("its arguments and environment are too long: %w", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("it is not a program for this system, or a script without a #! line: %w", err)
	}
	return err
}

// starter starts all processes from one thread that never ends: the signal
// that a child gets at the end of its parent is bound to the parent's thread.
var starter startThread

type startThread struct {
	once     sync.Once
	requests chan startRequest
}

type startRequest struct {
	fork func() error
	err  chan<- error
}

func (t *startThread) start(fork func() error) error {
	t.once.Do(func() {
		t.requests = make(chan startRequest)
		go func() {
			runtime.LockOSThread()
			for r := range t.requests {
				r.err <- r.fork()
			}
		}()
	})
	err := make(chan error, 1)
	t.requests <- startRequest{fork, err}
	return <-err
}
