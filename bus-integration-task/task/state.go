package task

import "time"

// Limits of what a [State] keeps. What is cut or not kept is in the log.
const (
	MaxTitle     = 200     // bytes of Title, Note and End.Text
	MaxMessage   = 4 << 10 // bytes of Said.Text
	MaxMessages  = 32      // messages that wait for delivery
	MaxApprovals = 32      // approval requests that wait for an answer

	DefaultLease = time.Minute // of a claim that names none
	MaxLease     = time.Hour   // a longer one is shortened, so that a lost worker is noticed

	maxReason = 200
)

// Status is where a task is in its life.
type Status string

// The statuses of a task.
const (
	StatusUnknown  Status = ""         // not created
	StatusPending  Status = "pending"  // waits for an Approved event
	StatusOpen     Status = "open"     // may be claimed
	StatusClaimed  Status = "claimed"  // held; no progress yet
	StatusRunning  Status = "running"  // held; the holder has reported progress
	StatusDone     Status = "done"     // ended
	StatusBlocked  Status = "blocked"  // ended
	StatusFailed   Status = "failed"   // ended
	StatusCanceled Status = "canceled" // ended
)

// Held reports whether an attempt holds the task.
func (s Status) Held() bool { return s == StatusClaimed || s == StatusRunning }

// Ended reports whether the round has ended. Only a Reopened event starts another one.
func (s Status) Ended() bool {
	return s == StatusDone || s == StatusBlocked || s == StatusFailed || s == StatusCanceled
}

// State is what the events of one task add up to. The zero value is a task without events.
// Its fields are for reading; [State.Apply] writes them.
//
// All readers that apply the same events have equal states. A State that lags behind the
// log is a cache: before it acts, a program appends on the condition that LastID is still
// the latest event of the task, and the server decides.
//
// A copy is independent of the original. A State may be read, but not applied to, from
// several goroutines at once. Its memory is bounded, whatever the log contains.
type State struct {
	Ref       string // work reference
	GroupID   string
	Recipient string
	Sender    string
	Status    Status
	Title     string // first line of the text that created the task
	Note      string // first line of the latest text of the holder
	CreatedID string // event that has the request in full
	OpenedID  string // event that started the round; of a reopened task it has what to do now
	LastID    string // latest event of the task, also if it changed nothing
	Round     int    // from 1; each round has at most one end

	Attempt Attempt // holder; zero unless Status.Held()
	Lapsed  int     // attempts of the round that were superseded because their lease ran out

	Thread Thread // session to resume
	Branch Branch
	Labels Labels // requested by users, and the model that was observed last
	Used   Labels // of the latest attempt that reported them
	RunID  string // run record of the latest attempt that reported one

	Approvals []Approval // requests of the holder without an answer, oldest first
	Messages  []Said     // messages of users that no holder has delivered, oldest first
	Missed    int        // further ones, which are not kept; read them from the log

	DeliveredID string // event of the latest message that a holder has delivered

	Announced Announcement // promotion that may have happened; see Decide
	End       End          // latest end; kept when the task is reopened

	lastMessage string
}

// Attempt is the time that a worker holds a task, from a valid Claimed event to an end, a
// release or the claim of another.
type Attempt struct {
	ID       string
	WorkerID string
	Lease    time.Duration // from 1 second to MaxLease
	ClaimID  string        // event that started it
	LastID   string        // its latest event; the lease runs from the receipt of this one
	Commit   string        // commit that it has announced
}

// Thread is a session of a runtime. Only its runtime can resume it, and only where its
// state is. Runtime and place are empty if they are not known.
type Thread struct {
	ID      string
	Runtime string // token
	Place   string // ID of the folder where workers keep the state
}

// Branch is where the result of a task is to be.
type Branch struct {
	Name          string // "branch" of the payload
	Create        bool
	Base          string
	WorktreeID    string
	ReuseWorktree bool
}

// Approval is a request that waits for an answer.
type Approval struct {
	ID      string
	EventID string
	Text    string // first line
}

// Said is a message of a user to the holder.
type Said struct {
	EventID string
	Sender  string
	Text    string // at most MaxMessage bytes
	Cut     bool   // the event has more
}

// Announcement is a promotion that an attempt announced and that may have happened.
type Announcement struct {
	Commit     string
	BaseBranch string // that the commit is promoted to; empty if it was not reported
	AttemptID  string
	RunID      string // of the attempt, if it reported one
	Round      int    // round that the commit would end as done
}

// End is how a round ended.
type End struct {
	EventID   string
	Status    Status
	Round     int
	AttemptID string // empty if a user canceled the task
	WorkerID  string
	Text      string // first line
	Commit    string
	RunID     string
	Time      time.Time
}

// Holds reports whether that attempt holds the task.
func (s State) Holds(attemptID string) bool {
	return attemptID != "" && s.Attempt.ID == attemptID
}

// EndedBy reports whether that attempt ended the current round. A worker that does not
// know whether its end was appended, reads the log and asks this.
func (s State) EndedBy(attemptID string) bool {
	return attemptID != "" && s.Status.Ended() && s.End.AttemptID == attemptID
}

// ChangeKind is what an event did to a task.
type ChangeKind string

// The kinds of changes.
const (
	ChangePending   ChangeKind = "pending"            // created; waits for approval
	ChangeOpened    ChangeKind = "opened"             // may be claimed now
	ChangeAssigned  ChangeKind = "assigned"           // a pending task has another recipient
	ChangeClaimed   ChangeKind = "claimed"            // an attempt holds it
	ChangeRenewed   ChangeKind = "renewed"            // the holder reported progress or wrote a message
	ChangeSaid      ChangeKind = "said"               // a user wrote a message
	ChangeRequested ChangeKind = "requested approval" // the holder needs a decision
	ChangeAnswered  ChangeKind = "answered"           // a request has its decision
	ChangeReleased  ChangeKind = "released"           // the holder handed it back
	ChangeEnded     ChangeKind = "ended"              // the round is over

	ChangeDuplicate ChangeKind = "duplicate" // nothing changed: applied before
	ChangeStale     ChangeKind = "stale"     // nothing changed: does not fit the state
	ChangeInvalid   ChangeKind = "invalid"   // nothing changed: defective
)

// Change reports what an event did.
type Change struct {
	Kind    ChangeKind
	Reason  string // one line, for all kinds that change nothing
	Lost    string // attempt that lost the task by this event
	Renewed bool   // the event is from the holder: measure quiet from its receipt
}

// Applied reports whether the event counts.
func (c Change) Applied() bool {
	return c.Kind != ChangeDuplicate && c.Kind != ChangeStale && c.Kind != ChangeInvalid
}
