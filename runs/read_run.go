package runs

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

// A Run is the record of a run. Its Status is the current one: a run whose file has
// StatusRunning may have crashed.
type Run struct {
	Info
	Dir string `json:"dir"` // the folder of its files
	// Recorded is the status in its file if Status is another one.
	Recorded Status `json:"recorded_status,omitempty"`
}

// Duration returns how long the run took, or has run until now. It is 0 for a run
// without an end, such as one that crashed.
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
	run := Run{Info: info, Dir: dir}
	if run.Status = info.currentStatus(); run.Status != info.Status {
		run.Recorded = info.Status
	}
	return run, nil
}

// clockSlack is how much later than the start of a run its process may have started:
// clocks are set, and some writers take the time first.
const clockSlack = 5 * time.Second

// currentStatus returns the current status, from the processes of this machine. The
// recording program writes status and end together. A record without an end is of a
// running run while that program lives, whatever its status: the agent can write to the
// file. An end that the agent writes is believed.
func (i *Info) currentStatus() Status {
	if i.Owner != "" && i.EndTime.IsZero() && process.LifeOf(i.Owner) == process.Alive {
		return StatusRunning
	}
	switch i.Status {
	case StatusRunning:
		return i.statusOfProcesses()
	case StatusCompleted, StatusFailed, StatusCrashed:
		return i.Status
	}
	return StatusUnknown
}

// statusOfProcesses returns the current status of a run whose record has StatusRunning.
func (i *Info) statusOfProcesses() Status {
	if i.Owner != "" {
		switch process.LifeOf(i.Owner) {
		case process.Alive:
			return StatusRunning
		case process.Dead:
			return StatusCrashed
		}
		return StatusUnknown
	}
	// Other writers record only a PID, the agent's or their own, which another process
	// may have now.
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
