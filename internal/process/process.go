package process

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// A Spec says what to start. It is not changed, and Files and the slices are
// not kept after Start returned.
type Spec struct {
	Path string   // absolute path of the executable
	Args []string // argv, without argv[0], which is Path
	// Env is the whole environment, KEY=VALUE; the last of a repeated key wins.
	// The run's tag is added to it.
	Env   []string
	Dir   string // absolute working directory
	Stdin string // whole standard input; always closed behind it
	// Interactive leaves standard input open for [Process.Input]. Stdin is empty.
	Interactive bool
	Files       [][]byte // contents of the descriptors 3, 4, … of the child

	// Stdout and Stderr get what the process writes, each called by one
	// goroutine, in order, in pieces of up to 64 KiB that are valid only during
	// the call. A Write that blocks slows the process and loses nothing; Wait
	// returns after it. A Write that fails stops the process; what comes after
	// it on that stream is read and dropped. Nil is the null device. When both
	// are the same writer, it must be safe for concurrent use.
	Stdout io.Writer
	Stderr io.Writer

	// Grace is the time between SIGTERM and SIGKILL; 0 means 5 s, less than 0
	// none.
	Grace time.Duration
	// Settle is the time after the end of a stopped process in which its
	// descendants may end by themselves; 0 means 1 s, less than 0 none.
	Settle time.Duration

	// Started is called once the process exists, with its PID and what Identify
	// returns for it, before any of its output is read, and also where it has ended
	// by then. It may be nil.
	Started func(pid int, identity string)

	// EmptyDirs names directories in Dir, one path element each, that are removed
	// at the end if they were absent at the start and are empty. While several
	// runs of this program have the same Dir, the last one removes them.
	EmptyDirs []string
}

// An Exit says how a process ended.
type Exit struct {
	Code   int    // -1 when a signal ended it, or when its end is not known
	Signal string // name of that signal, for example "SIGTERM"; empty when it exited
	// Stopped says that the process had not exited when the context ended, Stop
	// was called or a writer failed.
	Stopped bool
	// Swept counts the descendants that had to be killed: left behind after an
	// exit, or still alive after grace and settle.
	Swept int
	// Survived counts processes of the run that could not be ended, the started
	// one included.
	Survived int
}

// A StartError says why nothing was started.
type StartError struct {
	Err error
}

func (e *StartError) Error() string { return "start: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

const (
	defaultGrace  = 5 * time.Second
	defaultSettle = time.Second
	// sweepLimit bounds the end of processes that do not die of SIGKILL.
	sweepLimit = 5 * time.Second
	// chaseLimit bounds the end of processes of which new ones are found all the time:
	// on a busy system, a process that forks and exits can be ahead for seconds.
	chaseLimit = 30 * time.Second
	// leastLooks is how often a killed process is checked before it counts as a
	// survivor: on a busy system one look can take longer than the limit, and a
	// killed process needs time to die.
	leastLooks = 10
)

// A Process is a started process with its descendants. Its methods may be
// called concurrently.
type Process struct {
	run    run
	leader leader
	pipes  pipes
	grace  time.Duration
	settle time.Duration

	emptyDirs emptyDirs
	detach    func() bool // from the context

	stopOnce sync.Once
	stopping chan struct{} // closed by Stop
	endTools chan chan struct{}
	exited   chan struct{} // closed when the leader exited; it is not reaped yet
	done     chan struct{} // closed when exit and err are final

	exit Exit
	err  error
}

// Run starts a process and waits for its end. It returns a [*StartError] when
// nothing could be started, and the first error of Stdout or Stderr otherwise.
// How the process ended is in the Exit, not in the error. When ctx ends, the
// process and all its descendants are ended, Exit.Stopped is true and the error
// is nil: the reason is context.Cause. That holds too when ctx had ended before
// anything was started.
func Run(ctx context.Context, s Spec) (Exit, error) {
	p, err := begin(ctx, s)
	if _, failed := err.(*StartError); failed {
		return Exit{Code: -1}, err
	}
	if err != nil {
		return Exit{Code: -1, Stopped: true}, nil
	}
	p.supervise()
	return p.Wait()
}

// Start starts a process. It returns a [*StartError], or context.Cause when ctx
// has ended; nothing runs then and no descriptor is left open. The process is
// supervised until its end even if Wait is never called. When ctx ends, Stop is called.
func Start(ctx context.Context, s Spec) (*Process, error) {
	p, err := begin(ctx, s)
	if err != nil {
		return nil, err
	}
	go p.supervise()
	return p, nil
}

// begin starts a process; the caller must call supervise.
func begin(ctx context.Context, s Spec) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, &StartError{err}
	}
	dirs, err := watchEmptyDirs(s.Dir, s.EmptyDirs)
	if err != nil {
		return nil, &StartError{err}
	}
	p := &Process{
		grace:     orDefault(s.Grace, defaultGrace),
		settle:    orDefault(s.Settle, defaultSettle),
		stopping:  make(chan struct{}),
		endTools:  make(chan chan struct{}),
		exited:    make(chan struct{}),
		done:      make(chan struct{}),
		emptyDirs: dirs,
	}
	if err := p.start(s); err != nil {
		dirs.remove()
		return nil, &StartError{err}
	}
	reported := false
	defer func() {
		if !reported { // Started has panicked
			p.Stop()
			p.follow(ctx, s)
			go p.supervise()
		}
	}()
	if s.Started != nil {
		s.Started(p.run.pid, identifyChild(p.run.pid)) // it is reaped below
	}
	reported = true
	p.follow(ctx, s)
	return p, nil
}

// follow passes on what a started process writes, and notices its end.
func (p *Process) follow(ctx context.Context, s Spec) {
	p.pipes.run(s, p.Stop)
	go func() {
		p.leader.wait()
		close(p.exited)
	}()
	p.detach = context.AfterFunc(ctx, p.Stop)
}

func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

// Pid returns the process ID. It belongs to the process until Done is closed.
func (p *Process) Pid() int { return p.run.pid }

// Input returns the standard input of an interactive process. A Write blocks while
// the process does not read, and fails once it has ended; Close is the end of its
// input.
func (p *Process) Input() io.WriteCloser { return p.pipes.stdin }

// Done returns a channel that is closed when Wait would not block.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and returns at once: SIGTERM to its group, and
// SIGKILL to all that is left of it after the grace. Further calls, and calls
// after the exit, do nothing.
func (p *Process) Stop() {
	p.stopOnce.Do(func() { close(p.stopping) })
}

// Wait returns when the process and its descendants have ended, what they wrote
// was passed on, and nothing of the run is left in this program. The error is
// the first one of Stdout or Stderr. It may be called any number of times.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// supervise brings the run to its end.
func (p *Process) supervise() {
	defer close(p.done)
	defer p.emptyDirs.remove()
	defer p.detach()
	stopped := !p.serve()
	if stopped {
		p.terminate()
	}
	swept, survived := p.run.sweep()
	p.err = p.pipes.finish()
	p.exit = p.collect()
	p.exit.Stopped = stopped
	p.exit.Swept = swept + killLeft()
	p.exit.Survived += survived
}

// waitExit reports whether the leader exited before interrupt was closed and
// before the limit, if there is one, was over.
func (p *Process) waitExit(interrupt <-chan struct{}, limit time.Duration) bool {
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.exited:
		return true
	case <-interrupt:
	case <-over:
	}
	select {
	case <-p.exited: // it was ready as well
		return true
	default:
		return false
	}
}

// collect reaps the leader. Until then its PID, group and session cannot be
// taken by another process.
func (p *Process) collect() Exit {
	if !p.waitExit(nil, sweepLimit) {
		runs.remove(&p.run)
		go func() { // it is beyond SIGKILL now; reap it if it ever ends
			<-p.exited
			p.leader.reap()
		}()
		return Exit{Code: -1, Survived: 1}
	}
	runs.reaping.Lock()
	status, ok := p.leader.reap()
	runs.remove(&p.run)
	runs.reaping.Unlock()
	switch {
	case !ok:
		return Exit{Code: -1}
	case status.Signaled():
		return Exit{Code: -1, Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: status.ExitStatus()}
}
