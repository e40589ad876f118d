package runner

import "time"

// SetResultSilence lets a test wait less for an agent that does not exit.
func (r *Runner) SetResultSilence(d time.Duration) { r.silence = d }

// SetSurveyEntries lets a test reach the limit of what is looked through.
func (r *Runner) SetSurveyEntries(n int) { r.entries = n }
