package task

import "time"

// Worker is what a decision depends on besides the task.
type Worker struct {
	ID          string
	Recipient   string // tasks of others are not for it
	WorkRef     string // if set, the only task that it may take
	SafeRetries int    // attempts after the first that may lapse before the task fails; below 0 is 0

	AttemptID string // attempt that it believes to hold the task; empty before a claim
	Checked   string // announced commit that it found not to be promoted, with the lock held
}

// Action is what a worker does next.
type Action string

// The actions.
const (
	Nothing   Action = "nothing"   // the task is not for this worker, or no longer
	Wait      Action = "wait"      // another attempt holds it; look again after Decision.Wait
	Claim     Action = "claim"     // append Claimed
	Supersede Action = "supersede" // append Claimed with Decision.Supersedes

	// To the holder only.
	Run     Action = "run"     // work on it
	Recover Action = "recover" // see State.Decide
	GiveUp  Action = "give up" // append Failed: too many attempts were lost
)

// Decision is what a worker does next with a task.
type Decision struct {
	Action     Action
	Reason     string        // one line
	Wait       time.Duration // of Wait: until the attempt could be superseded, if it stays quiet
	Supersedes string        // of Supersede: attempt to name
	Commit     string        // of Recover: commit to look for
	EndsRound  bool          // of Recover: if it was promoted, it is the result of the round
}

// Decide returns what the worker does next. quiet is the time since the worker received the
// latest event of the current attempt (Change.Renewed), by its own monotonic clock; it
// matters only while another attempt holds the task.
//
// Every append that follows from a decision carries the condition that LastID is the latest
// event of the task. If the server refuses it, the worker reads what it missed, applies it
// and decides again. If it gets no answer, it does the same, because the event may have been
// appended. A worker that claimed asks again with AttemptID set, and works only on Run.
//
// To promote a commit, the holder locks the repository, appends Progress with the commit,
// fast-forwards, appends Done with the commit, and unlocks. An attempt that was lost in
// between may still promote. So Recover requires the next holder to lock the repository
// before it works, and to look whether the commit is in the primary branch. If it is and
// EndsRound, it appends Done with that commit. If not, it sets Checked and decides again.
func (s State) Decide(w Worker, quiet time.Duration) Decision {
	switch {
	case s.Status == StatusUnknown:
		return nothing("the task was not created")
	case w.WorkRef != "" && w.WorkRef != s.Ref:
		return nothing("the worker is bound to task " + w.WorkRef)
	case w.Recipient != s.Recipient:
		return nothing("the task is for " + s.Recipient)
	case s.Status == StatusPending:
		return nothing("the task waits for approval")
	case s.Status.Ended():
		return nothing("the task has ended")
	case w.AttemptID != "" && !s.Holds(w.AttemptID):
		return nothing("attempt " + w.AttemptID + " has lost the task")
	case w.AttemptID != "":
		return s.decideHolder(w)
	case s.Status == StatusOpen:
		return Decision{Action: Claim, Reason: "the task is open"}
	case quiet < s.Attempt.Lease:
		return Decision{Action: Wait, Wait: s.Attempt.Lease - quiet, Reason: "attempt " + s.Attempt.ID + " holds the task"}
	}
	return Decision{Action: Supersede, Supersedes: s.Attempt.ID, Reason: "the lease of attempt " + s.Attempt.ID + " ran out"}
}

func (s State) decideHolder(w Worker) Decision {
	a := s.Announced
	switch {
	case a.Commit != "" && a.AttemptID != w.AttemptID && a.Commit != w.Checked:
		return Decision{Action: Recover, Commit: a.Commit, EndsRound: a.Round == s.Round,
			Reason: "attempt " + a.AttemptID + " may have promoted " + a.Commit}
	case s.Lapsed > max(w.SafeRetries, 0):
		return Decision{Action: GiveUp, Reason: "too many attempts ended without a result"}
	}
	return Decision{Action: Run, Reason: "the worker holds the task"}
}

func nothing(why string) Decision { return Decision{Action: Nothing, Reason: why} }
