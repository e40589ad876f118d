package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
)

func (s *Sessions) logFile(id string) string { return filepath.Join(s.folder(id), "log") }

// A Report is what a supervisor tells the command that starts it, a line each,
// until the session is ready or has failed.
type Report struct {
	Warning string   `json:"warning,omitempty"`
	Runtime string   `json:"runtime,omitempty"` // what is about to start
	Model   string   `json:"model,omitempty"`
	Ready   bool     `json:"ready,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// A Launch says how the supervisor of a session is started.
type Launch struct {
	Path    string   // of the program that calls Serve when it is called so
	Args    []string // with the name of the program
	Environ []string
	Input   []byte       // what the supervisor reads on standard input
	Report  func(Report) // called with what it reports; may be nil
}

// Launch starts the supervisor of e and returns when the session is ready. When
// ctx ends before, or the session cannot be started, nothing is left of it but its
// entry. What lives on of a session that crashed is ended first, and the supervisor
// of one that has ended is waited for like by Stop.
func (s *Sessions) Launch(ctx context.Context, e Entry, l Launch) error {
	switch e.State() {
	case StateElsewhere:
		return e.notHere()
	case StateCrashed:
		if err := s.endLeftovers(ctx, e); err != nil {
			return err
		}
	case StateEnded:
		ending, cancel := s.bounded(ctx, e)
		err := gone(ending, e)
		cancel()
		if err != nil {
			return err
		}
	}
	log, err := statefile.Append(s.logFile(e.ID))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := log.Truncate(0); err != nil {
		return err
	}
	child, err := process.StartDetached(process.Detached{
		Path: l.Path, Args: l.Args, Env: l.Environ, Dir: "/", Input: l.Input, Log: log,
	})
	if err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	defer child.Report.Close()
	defer context.AfterFunc(ctx, child.Stop)()
	for lines := bufio.NewReader(child.Report); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			child.Wait()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &agent.Error{Kind: agent.ErrAgent, Err: &remote{"the supervisor has ended before the session was ready",
				&agent.ExitError{Code: -1, Stderr: s.LogTail(e.ID)}}}
		}
		var r Report
		if err := json.Unmarshal(line, &r); err != nil {
			child.Stop()
			child.Wait()
			return fmt.Errorf("the supervisor is not understood: %w", err)
		}
		switch {
		case r.Ready:
			return nil
		case r.Failure != nil:
			child.Wait()
			return r.Failure.err()
		case l.Report != nil:
			l.Report(r)
		}
	}
}

// A Reporter is the supervisor's side of [Report]. Its methods may be called
// concurrently.
type Reporter struct {
	mu   sync.Mutex
	file *os.File // nil: nobody listens any more
}

// NewReporter returns the reporter of this process, which was started by Launch.
func NewReporter() *Reporter {
	syscall.CloseOnExec(process.ReportFile)
	return &Reporter{file: os.NewFile(process.ReportFile, "report")}
}

// Report reports r. What tells the end of the start is the last report.
func (r *Reporter) Report(what Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	line, err := json.Marshal(what)
	if err == nil {
		_, _ = r.file.Write(append(line, '\n')) // to somebody who may have gone
	}
	if what.Ready || what.Failure != nil {
		r.file.Close()
		r.file = nil
	}
}

// Fail reports why there is no session.
func (r *Reporter) Fail(err error) { r.Report(Report{Failure: failureOf(err)}) }

// maxLog is how long the log of a supervisor gets, in bytes, before it begins
// anew.
const maxLog = 1 << 20

// BoundedLog writes to a log that is opened for appending.
type BoundedLog struct {
	File *os.File
	size int
}

// Write never fails: a log that cannot be written is no reason to stop an agent.
func (l *BoundedLog) Write(b []byte) (int, error) {
	if l.size += len(b); l.size > maxLog {
		_ = l.File.Truncate(0)
		l.size = len(b)
	}
	_, _ = l.File.Write(b)
	return len(b), nil
}
