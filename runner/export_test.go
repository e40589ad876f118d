package runner

import "time"

// SetResultSilence shortens the wait for an agent that does not exit.
func (r *Runner) SetResultSilence(d time.Duration) { r.silence = d }

// SetSurveyEntries lowers the limit of entries to search.
func (r *Runner) SetSurveyEntries(n int) { r.entries = n }

// SetUnreached lets a test wait less for the warning of requests that are repeated.
func (r *Runner) SetUnreached(d time.Duration) { r.unreached = d }

// SetUnanswered does the same for a first request without an answer.
func (r *Runner) SetUnanswered(d time.Duration) { r.unanswered = d }
