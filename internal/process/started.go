package process

import (
	"fmt"
	"os"
	"time"
)

// StartedAt returns when the process with a PID was started, by the clock as it is
// set now. It is for a PID that comes without what [Identify] returns, and not
// exact, because clocks are set. The error is os.ErrProcessDone when there is no
// such process, and another one when that is not sure.
func StartedAt(pid int) (time.Time, error) {
	p, err := readProcess(pid)
	switch {
	case err == nil && p.dead, err != nil && pid > 0 && isGone(pid):
		return time.Time{}, os.ErrProcessDone
	case err != nil:
		return time.Time{}, fmt.Errorf("look for process %d: %w", pid, err)
	}
	return bornAt(p.born), nil
}
