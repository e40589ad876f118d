package runs

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

// A Run is the record of a run as it was read. Its Status is what is so now: a
// file that says running can be of a run that has crashed.
type Run struct {
	Info
	Dir string `json:"dir"` // the folder of its files
}

// Duration returns how long the run took, or has gone on by now. It is 0 where
// nobody knows: a run that crashed says no end.
func (r *Run) Duration() time.Duration {
	switch {
	case !r.EndTime.IsZero():
		return max(0, r.EndTime.Sub(r.StartTime))
	case r.Status == StatusRunning:
		return max(0, time.Since(r.StartTime))
	}
	return 0
}

// ReadRun reads the record in a folder.
func ReadRun(dir string) (Run, error) {
	info, err := ReadInfo(filepath.Join(dir, infoName))
	if err != nil {
		return Run{}, err
	}
	info.Status = info.currentStatus()
	return Run{Info: info, Dir: dir}, nil
}

// clockSlack is how much earlier than the start of a run its process may seem to
// have been started: clocks are set, and some writers note the time first.
const clockSlack = 5 * time.Second

// currentStatus returns the status as it is now, by the processes of this machine.
// Who records a run says how it ended and when in one go: a record without its end
// is of a run that goes on while its program does, whatever else it says, because
// the agent can write to it, too. Where that writes an end as well, it is believed.
func (i *Info) currentStatus() Status {
	if i.Runner != "" && i.EndTime.IsZero() && process.LifeOf(i.Runner) == process.Alive {
		return StatusRunning
	}
	switch i.Status {
	case StatusRunning:
		return i.statusOfProcesses()
	case StatusCompleted, StatusFailed, StatusCrashed:
		return i.Status
	}
	return StatusUnknown // a word of another writer
}

// statusOfProcesses returns the status of a run that goes on, as its record says.
func (i *Info) statusOfProcesses() Status {
	if i.Runner != "" {
		switch process.LifeOf(i.Runner) {
		case process.Alive:
			return StatusRunning
		case process.Dead:
			return StatusCrashed
		}
		return StatusUnknown
	}
	// Another writer of the protocol says no more than a PID, the agent's or its
	// own, which can have been given to another process since.
	if i.PID <= 0 {
		return StatusUnknown
	}
	started, err := process.StartedAt(i.PID)
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return StatusCrashed
	case err != nil:
		return StatusUnknown
	case started.After(i.StartTime.Add(clockSlack)):
		return StatusCrashed
	}
	return StatusRunning
}
