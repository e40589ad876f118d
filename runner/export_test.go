package runner

import "time"

// SetResultSilence lets a test wait less for an agent that does not exit.
func (r *Runner) SetResultSilence(d time.Duration) { r.silence = d }
