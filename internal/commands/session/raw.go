package session

import (
	"os"
	"os/signal"
	"sync"

	"golang.org/x/term"

	"github.com/busdk/bus-agent/internal/unix"
)

// A rawTerminal is a terminal that is in raw mode from begin to restore, except while
// the program is stopped as by Ctrl-Z.
type rawTerminal struct {
	fd      int
	before  *term.State
	stops   chan os.Signal
	resumes chan os.Signal

	mu    sync.Mutex
	isRaw bool
	over  bool
}

func (t *rawTerminal) begin(in *os.File) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fd = int(in.Fd())
	if t.before, err = term.MakeRaw(t.fd); err != nil {
		return err
	}
	t.isRaw = true
	t.stops, t.resumes = make(chan os.Signal, 1), make(chan os.Signal, 1)
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(t.stops, unix.SIGTSTP)
		signal.Notify(t.resumes, unix.SIGCONT)
		go t.follow()
	}
	return nil
}

// raw reports whether the terminal is in raw mode.
func (t *rawTerminal) raw() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isRaw
}

// restore puts the terminal back into the mode that it had, for good.
func (t *rawTerminal) restore() {
	signal.Stop(t.stops)
	signal.Stop(t.resumes)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && t.stops != nil { // begin was called
		t.over = true
		close(t.stops)
	}
	t.ordinary()
}

// restoreInPanic is restore where it is deferred and its function panics.
func (t *rawTerminal) restoreInPanic() {
	if reason := recover(); reason != nil {
		t.restore()
		panic(reason)
	}
}

func (t *rawTerminal) ordinary() {
	if t.isRaw {
		_ = term.Restore(t.fd, t.before) // a terminal that has gone has no mode
		t.isRaw = false
	}
}

// follow stops the program when it is asked to, with the terminal in its ordinary
// mode. It sends SIGSTOP because a Go program that has caught SIGTSTP once cannot be
// stopped by it.
func (t *rawTerminal) follow() {
	for range t.stops {
		if !underShell() {
			continue
		}
		t.mu.Lock()
		t.ordinary()
		t.mu.Unlock()
		select {
		case <-t.resumes: // an earlier one
		default:
		}
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // which cannot fail
		<-t.resumes
		t.mu.Lock()
		if !t.over {
			_, err := term.MakeRaw(t.fd)
			t.isRaw = err == nil
		}
		t.mu.Unlock()
	}
}

// underShell reports whether the parent controls this program as a job, so that it
// can resume it: one in the same session but in another process group.
func underShell() bool {
	parent := os.Getppid()
	own, err := unix.Getsid(0)
	theirs, errParent := unix.Getsid(parent)
	group, errGroup := unix.Getpgid(parent)
	return parent > 1 && err == nil && errParent == nil && errGroup == nil && own == theirs && group != unix.Getpgrp()
}

// suspend does what Ctrl-Z does in a terminal that is not in raw mode.
func suspend() { _ = unix.Kill(0, unix.SIGTSTP) }
