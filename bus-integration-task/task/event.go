package task

import (
	"encoding/json"
	"time"
)

// Names of the events of a task.
const (
	Created           = "bus.task.created"
	Approved          = "bus.task.approved"
	Assigned          = "bus.task.assigned"
	Reopened          = "bus.task.reopened"
	Claimed           = "bus.task.claimed"
	Progress          = "bus.task.progress" // also renews the lease of a claim
	Released          = "bus.task.released" // the worker hands the task back
	Message           = "bus.task.message"
	ApprovalRequested = "bus.task.approval.requested"
	ApprovalAnswered  = "bus.task.approval.answered"
	Done              = "bus.task.done"
	Blocked           = "bus.task.blocked"
	Failed            = "bus.task.failed"
	Canceled          = "bus.task.canceled"
	Closed            = "bus.task.closed" // ends a task as Done does; read, never written
)

// Event is an entry of a task's log. [Decode] makes one from what a server delivers.
type Event struct {
	ID     string    // "evt_" and 19 digits; IDs of a log ascend
	Name   string    // one of the names above
	Source string    // program that published it
	Time   time.Time // as stamped by the server; to be shown, never to decide
	Payload

	problem string // why the event can change nothing, or empty
}

// Payload is the payload of every event of a task; each kind uses some of its fields.
type Payload struct {
	WorkRef   string `json:"work_ref"`
	GroupID   string `json:"group_id,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	Sender    string `json:"sender,omitempty"`
	Status    string `json:"status,omitempty"`
	Text      string `json:"text,omitempty"` // one line: a summary, or what happened
	Body      string `json:"body,omitempty"`

	// Where the work is to be. The worker reports with WorktreeID what it has left there.
	Branch        string `json:"branch,omitempty"`
	CreateBranch  bool   `json:"create_branch,omitempty"`
	BaseBranch    string `json:"base_branch,omitempty"`
	WorktreeID    string `json:"worktree_id,omitempty"`
	ReuseWorktree bool   `json:"reuse_worktree,omitempty"`

	Labels      Labels       `json:"labels,omitzero"`
	Attachments []Attachment `json:"attachments,omitempty"`

	// The session to resume. Runtime and place are empty if they are not known.
	ThreadID      string `json:"app_server_thread_id,omitempty"`
	ThreadRuntime string `json:"thread_runtime,omitempty"`  // token of the runtime that has it
	ThreadPlace   string `json:"thread_place_id,omitempty"` // ID of the folder where workers keep it

	// Of the worker that holds, or wants, the task.
	WorkerID     string `json:"worker_id,omitempty"`
	AttemptID    string `json:"attempt_id,omitempty"`
	Supersedes   string `json:"supersedes,omitempty"`    // Claimed: attempt whose lease has run out
	LeaseSeconds int    `json:"lease_seconds,omitempty"` // Claimed: time without renewal after which the claim may be superseded

	// On an event of the holder: ID of the latest message of a user that it has delivered.
	DeliveredID string `json:"delivered_id,omitempty"`

	// Of an approval request and its answer. A Message of the holder with an ApprovalID
	// closes the request, which no user has answered.
	ApprovalID string `json:"approval_id,omitempty"`
	Decision   string `json:"decision,omitempty"` // accept, accept_for_session, decline or cancel

	// Of the result. On a Progress event, Commit announces the commit that the worker is
	// about to promote to BaseBranch.
	Commit   string          `json:"commit,omitempty"`
	RunID    string          `json:"run_id,omitempty"` // run record of the attempt
	Closeout json.RawMessage `json:"app_server_closeout,omitempty"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// Labels describe with what a task is to be, or was, worked on. They are never secret.
type Labels struct {
	WorkerProfile        string `json:"worker_profile,omitempty"`
	RequestedModel       string `json:"requested_model,omitempty"`
	ObservedModel        string `json:"observed_model,omitempty"`
	RequestedEffort      string `json:"requested_reasoning_effort,omitempty"`
	AuthMode             string `json:"auth_mode,omitempty"`
	CredentialSourceKind string `json:"credential_source_kind,omitempty"`
}

// Attachment is a file that comes with an event.
type Attachment struct {
	Path              string `json:"path"`
	Size              int64  `json:"size"`
	Checksum          string `json:"checksum,omitempty"`
	ChecksumAlgorithm string `json:"checksum_algorithm,omitempty"`
	MediaType         string `json:"media_type,omitempty"`
	ContentEncoding   string `json:"content_encoding,omitempty"`
	Content           string `json:"content,omitempty"`
}
