package task

import (
	"cmp"
	"slices"
	"time"
)

// Apply advances the state by the next event of the log and reports what it did.
//
// A reader must apply every event of the task in the order of the log. It may apply an
// event again; an event whose ID is not above LastID changes nothing. Events that do not
// fit or are defective change only LastID. Apply does not keep e.
func (s *State) Apply(e Event) Change {
	switch {
	case s.Ref != "" && e.WorkRef != s.Ref:
		return Change{Kind: ChangeInvalid, Reason: "event of task " + quote(e.WorkRef)}
	case !validEventID(e.ID):
		return Change{Kind: ChangeInvalid, Reason: "id " + quote(e.ID) + ": not evt_ and 19 digits"}
	case e.ID == s.LastID:
		return Change{Kind: ChangeDuplicate, Reason: "applied before"}
	case e.ID < s.LastID:
		return Change{Kind: ChangeDuplicate, Reason: "before " + s.LastID + ", which was applied"}
	}
	s.Ref, s.LastID = e.WorkRef, e.ID
	if e.problem != "" {
		return Change{Kind: ChangeInvalid, Reason: e.problem}
	}
	apply := s.applier(e.Name)
	if apply == nil {
		return Change{Kind: ChangeInvalid, Reason: "unknown name " + quote(e.Name)}
	}
	return apply(&e)
}

func (s *State) applier(name string) func(*Event) Change {
	switch name {
	case Created:
		return s.create
	case Approved:
		return s.approve
	case Assigned:
		return s.assign
	case Reopened:
		return s.reopen
	case Claimed:
		return s.claim
	case Message:
		return s.message
	case ApprovalAnswered:
		return s.answer
	case Canceled:
		return s.cancel
	case Progress, Released, ApprovalRequested, Done, Closed, Blocked, Failed:
		return s.applyHolder
	}
	return nil
}

func (s *State) create(e *Event) Change {
	if s.Status != StatusUnknown {
		return stale("the task exists")
	}
	if e.Recipient == "" {
		return invalid("recipient: missing")
	}
	switch Status(e.Status) {
	case "", StatusOpen:
		s.Status = StatusOpen
	case StatusPending:
		s.Status = StatusPending
	default:
		return invalid("status " + quote(e.Status) + ": a new task is open or pending")
	}
	s.GroupID, s.Recipient, s.Sender = e.GroupID, e.Recipient, e.Sender
	s.Title = line(cmp.Or(e.Text, e.Body), MaxTitle)
	s.CreatedID, s.OpenedID, s.Round = e.ID, e.ID, 1
	s.keep(e)
	if s.Status == StatusPending {
		return Change{Kind: ChangePending}
	}
	return Change{Kind: ChangeOpened}
}

func (s *State) approve(e *Event) Change {
	if s.Status != StatusPending {
		return stale("the task does not wait for approval")
	}
	s.Status = StatusOpen
	return Change{Kind: ChangeOpened}
}

// assign starts a round, so the attempts of the former recipient do not count. It does not
// stand for the approval of a pending task, and does not open an ended one.
func (s *State) assign(e *Event) Change {
	switch {
	case s.Status == StatusUnknown:
		return stale("the task was not created")
	case s.Status.Ended():
		return stale("the task has ended; reopen it")
	case e.Recipient == "":
		return invalid("recipient: missing")
	}
	s.Recipient = e.Recipient
	if s.Status == StatusPending {
		return Change{Kind: ChangeAssigned}
	}
	lost := s.Attempt.ID
	s.open(e)
	// The former holder may be in the middle of a promotion, which would then be the result.
	if s.Announced.Round == s.Round-1 {
		s.Announced.Round = s.Round
	}
	return Change{Kind: ChangeOpened, Lost: lost}
}

func (s *State) reopen(e *Event) Change {
	if !s.Status.Ended() {
		return stale("the task has not ended")
	}
	if e.Recipient != "" {
		s.Recipient = e.Recipient
	}
	s.open(e)
	s.keep(e)
	return Change{Kind: ChangeOpened}
}

// open starts the next round.
func (s *State) open(e *Event) {
	s.vacate(StatusOpen)
	s.OpenedID, s.Note, s.Lapsed = e.ID, "", 0
	s.Round++
}

// vacate ends the current attempt, if there is one.
func (s *State) vacate(status Status) {
	s.Status, s.Attempt, s.Approvals = status, Attempt{}, nil
}

func (s *State) claim(e *Event) Change {
	switch {
	case e.AttemptID == "" || e.WorkerID == "" && e.AttemptID != legacyAttempt:
		return invalid("attempt_id or worker_id: missing")
	case s.Status == StatusUnknown:
		return stale("the task was not created")
	case s.Status == StatusPending:
		return stale("the task waits for approval")
	case s.Status.Ended():
		return stale("the task has ended")
	case e.Recipient != "" && e.Recipient != s.Recipient:
		return stale("the task is assigned to " + s.Recipient)
	case s.Attempt.ID == e.AttemptID:
		return stale("the attempt holds the task already")
	case s.Status == StatusOpen && e.Supersedes != "":
		return stale("attempt " + e.Supersedes + " does not hold the task")
	case e.Supersedes != s.Attempt.ID:
		return stale("attempt " + s.Attempt.ID + " holds the task")
	}
	lost := s.Attempt.ID
	if lost != "" {
		s.Lapsed++
	}
	s.vacate(StatusClaimed)
	s.Attempt = Attempt{ID: e.AttemptID, WorkerID: e.WorkerID, Lease: lease(e.LeaseSeconds), ClaimID: e.ID}
	s.renew(e)
	return Change{Kind: ChangeClaimed, Lost: lost, Renewed: true}
}

func lease(seconds int) time.Duration {
	if seconds <= 0 {
		return DefaultLease
	}
	return time.Duration(min(seconds, int(MaxLease/time.Second))) * time.Second
}

// applyHolder applies an event that counts only if it is from the holder.
func (s *State) applyHolder(e *Event) Change {
	if why := s.notHolder(e); why != "" {
		return stale(why)
	}
	switch e.Name {
	case Progress:
		return s.progress(e)
	case ApprovalRequested:
		return s.request(e)
	case Released:
		s.renew(e)
		return s.release(e)
	}
	return s.end(e)
}

func (s *State) notHolder(e *Event) string {
	switch {
	case e.AttemptID == "":
		return "attempt_id: missing; only the holder of the task publishes " + e.Name
	case s.Status.Ended():
		return "the task has ended"
	case s.Attempt.ID != e.AttemptID:
		return "attempt " + e.AttemptID + " does not hold the task"
	}
	return ""
}

// renew takes over what every event of the holder may carry.
func (s *State) renew(e *Event) {
	s.Attempt.LastID = e.ID
	if e.Text != "" {
		s.Note = line(e.Text, MaxTitle)
	}
	s.keep(e)
	s.deliver(e.DeliveredID)
}

func (s *State) progress(e *Event) Change {
	s.renew(e)
	s.Status = StatusRunning
	if e.Commit != "" {
		s.Attempt.Commit = e.Commit
		s.Announced = Announcement{Commit: e.Commit, BaseBranch: e.BaseBranch, AttemptID: e.AttemptID, RunID: s.RunID, Round: s.Round}
	}
	return Change{Kind: ChangeRenewed, Renewed: true}
}

func (s *State) request(e *Event) Change {
	switch {
	case e.ApprovalID == "":
		return invalid("approval_id: missing")
	case slices.ContainsFunc(s.Approvals, func(a Approval) bool { return a.ID == e.ApprovalID }):
		return stale("approval " + e.ApprovalID + " is requested already")
	case len(s.Approvals) >= MaxApprovals:
		return invalid("too many approval requests wait for an answer")
	}
	s.renew(e)
	s.Status = StatusRunning
	s.Approvals = append(slices.Clip(s.Approvals), Approval{ID: e.ApprovalID, EventID: e.ID, Text: line(cmp.Or(e.Text, e.Body), MaxTitle)})
	return Change{Kind: ChangeRequested, Renewed: true}
}

func (s *State) release(e *Event) Change {
	lost := s.Attempt.ID
	if s.Announced.AttemptID == lost {
		s.Announced = Announcement{} // it has left the promotion behind
	}
	s.vacate(StatusOpen)
	return Change{Kind: ChangeReleased, Lost: lost}
}

func (s *State) answer(e *Event) Change {
	switch e.Decision {
	case "accept", "accept_for_session", "decline", "cancel":
	default:
		return invalid("decision " + quote(e.Decision) + ": not accept, accept_for_session, decline or cancel")
	}
	if !s.closeApproval(e.ApprovalID) {
		return stale("approval " + quote(e.ApprovalID) + " does not wait for an answer")
	}
	return Change{Kind: ChangeAnswered}
}

func (s *State) closeApproval(id string) bool {
	i := slices.IndexFunc(s.Approvals, func(a Approval) bool { return a.ID == id })
	if i < 0 {
		return false
	}
	s.Approvals = append(slices.Clone(s.Approvals[:i]), s.Approvals[i+1:]...)
	return true
}

func (s *State) message(e *Event) Change {
	if e.AttemptID != "" {
		if why := s.notHolder(e); why != "" {
			return stale(why)
		}
		s.renew(e)
		s.closeApproval(e.ApprovalID) // without an answer of a user
		return Change{Kind: ChangeRenewed, Renewed: true}
	}
	if s.Status == StatusUnknown {
		return stale("the task was not created")
	}
	s.lastMessage = e.ID
	if len(s.Messages) >= MaxMessages {
		s.Missed++
		return Change{Kind: ChangeSaid}
	}
	text, isCut := cut(cmp.Or(e.Body, e.Text), MaxMessage)
	s.Messages = append(slices.Clip(s.Messages), Said{EventID: e.ID, Sender: e.Sender, Text: text, Cut: isCut})
	return Change{Kind: ChangeSaid}
}

// deliver forgets the messages up to that event; "" is before all.
func (s *State) deliver(id string) {
	s.DeliveredID = max(s.DeliveredID, min(id, s.lastMessage))
	if id >= s.lastMessage {
		s.Messages, s.Missed = nil, 0
		return
	}
	// With messages missed, only the kept ones are known to be before id.
	i := slices.IndexFunc(s.Messages, func(m Said) bool { return m.EventID > id })
	switch {
	case i > 0:
		s.Messages = slices.Clone(s.Messages[i:])
	case i < 0:
		s.Messages = nil
	}
}

// cancel is open to every sender. A worker names its attempt, so that it cannot cancel a task
// that it has lost.
func (s *State) cancel(e *Event) Change {
	switch {
	case s.Status == StatusUnknown:
		return stale("the task was not created")
	case s.Status.Ended():
		return stale("the task has ended")
	case e.AttemptID != "" && e.AttemptID != s.Attempt.ID:
		return stale("attempt " + e.AttemptID + " does not hold the task")
	}
	return s.end(e)
}

func (s *State) end(e *Event) Change {
	status := map[string]Status{Done: StatusDone, Closed: StatusDone, Blocked: StatusBlocked, Failed: StatusFailed, Canceled: StatusCanceled}[e.Name]
	if e.AttemptID != "" {
		s.renew(e)
	}
	// The holder has left its promotion behind. One that was stopped from outside, or that
	// another attempt announced, may still happen: the next holder must check it.
	if status == StatusDone || s.Announced.AttemptID == e.AttemptID {
		s.Announced = Announcement{}
	}
	lost := ""
	if e.AttemptID == "" {
		lost = s.Attempt.ID
	}
	s.End = End{
		EventID: e.ID, Status: status, Round: s.Round, AttemptID: e.AttemptID, WorkerID: e.WorkerID,
		Text: line(cmp.Or(e.Text, e.Body), MaxTitle), Commit: e.Commit, RunID: e.RunID, Time: e.Time,
	}
	s.vacate(status)
	return Change{Kind: ChangeEnded, Lost: lost}
}

// keep takes over what lasts beyond an attempt; empty fields change nothing.
func (s *State) keep(e *Event) {
	if e.ThreadID != "" && (e.ThreadID != s.Thread.ID || e.ThreadRuntime != "") {
		s.Thread = Thread{ID: e.ThreadID, Runtime: e.ThreadRuntime, Place: e.ThreadPlace}
	}
	if e.Name != Progress || e.Commit == "" { // the branch of an announcement is that of its commit
		s.keepBranch(e)
	}
	s.Labels.ObservedModel = cmp.Or(e.Labels.ObservedModel, s.Labels.ObservedModel)
	if e.AttemptID != "" { // what a worker has used does not bind the next one
		s.RunID = cmp.Or(e.RunID, s.RunID)
		if e.Labels != (Labels{}) {
			s.Used = e.Labels
		}
		return
	}
	s.Labels = Labels{
		WorkerProfile:        cmp.Or(e.Labels.WorkerProfile, s.Labels.WorkerProfile),
		RequestedModel:       cmp.Or(e.Labels.RequestedModel, s.Labels.RequestedModel),
		ObservedModel:        s.Labels.ObservedModel,
		RequestedEffort:      cmp.Or(e.Labels.RequestedEffort, s.Labels.RequestedEffort),
		AuthMode:             cmp.Or(e.Labels.AuthMode, s.Labels.AuthMode),
		CredentialSourceKind: cmp.Or(e.Labels.CredentialSourceKind, s.Labels.CredentialSourceKind),
	}
}

// keepBranch takes over where the work is to be continued. A user who names another branch
// does not want the worktree that an attempt has left.
func (s *State) keepBranch(e *Event) {
	if e.Branch != "" {
		if e.Branch != s.Branch.Name && e.AttemptID == "" {
			s.Branch.WorktreeID, s.Branch.ReuseWorktree = "", false
		}
		s.Branch.Name, s.Branch.Create = e.Branch, e.CreateBranch
	}
	s.Branch.Base = cmp.Or(e.BaseBranch, s.Branch.Base)
	if e.WorktreeID != "" {
		s.Branch.WorktreeID, s.Branch.ReuseWorktree = e.WorktreeID, e.ReuseWorktree
	}
}

func stale(why string) Change { return Change{Kind: ChangeStale, Reason: line(why, maxReason)} }

func invalid(why string) Change { return Change{Kind: ChangeInvalid, Reason: line(why, maxReason)} }
