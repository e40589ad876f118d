package closeout

// Action is what to do with a task that has ended.
type Action string

// The actions that Triage returns.
const (
	RecordBlocker      Action = "record_blocker"
	ReviewPinCandidate Action = "review_pin_candidate"
	ReopenCandidate    Action = "reopen_candidate"
	InspectTerminal    Action = "inspect_terminal"
)

// Triage returns the action for a task with the given outcome and closeout, which is nil
// if the agent reported none.
func Triage(outcome Outcome, c *Closeout) Action {
	switch {
	case outcome == Blocked || c != nil && (c.Status == StatusBlocked || len(c.RemainingBlockers) > 0):
		return RecordBlocker
	case outcome == Failed || c != nil && (c.Status == StatusFailed || !c.TaskComplete):
		return ReopenCandidate
	case c != nil:
		return ReviewPinCandidate
	}
	return InspectTerminal
}
