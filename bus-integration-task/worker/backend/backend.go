package backend

import (
	"context"
	"errors"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"

	"github.com/busdk/bus-integration-task/closeout"
)

// A Backend runs attempts. Its methods may be called concurrently.
type Backend interface {
	// Start begins an attempt and returns at once. The attempt runs until
	// [Running.Stop], which the caller must call; the end of ctx stops it too. An
	// error, of kind agent.ErrUsage, says what is wrong with a; nothing was started.
	// Every other failure is in the Outcome.
	Start(ctx context.Context, a Attempt, l Listener) (Running, error)
}

// An Attempt is what one attempt at a task needs. The zero value of every field that has
// no comment about it is usable.
type Attempt struct {
	// Workdir is the folder that the attempt may change, absolute. Required.
	Workdir string

	// Prompt is the first message to the agent. Session requires it.
	Prompt string

	// ThreadID is the session to resume; empty begins a new one. ThreadRuntime is the
	// token of the runtime that has it; empty is the first one. A session that cannot
	// be resumed is replaced by a new one, with a notice.
	ThreadID      string
	ThreadRuntime string

	// Model and Effort are those requested; empty lets the runtime choose.
	Model  string
	Effort string

	// Sandbox is what the agent may do; empty means WorkspaceWrite.
	Sandbox Sandbox

	// ApprovalPolicy says whether approval requests reach the listener; empty means
	// ApprovalOnRequest.
	ApprovalPolicy ApprovalPolicy

	// ApprovalTimeout is how long an approval request waits before it is declined;
	// zero means session.DefaultApprovalTimeout.
	ApprovalTimeout time.Duration

	// ApprovalsBefore is the number of approval requests that earlier attempts at the
	// task made. IDs continue after it, so that an answer to an earlier request never
	// reaches a later one.
	ApprovalsBefore int

	// Timeout bounds the attempt up to its outcome, including the time that approval
	// requests wait. Zero means no limit, or containers.MaxTimeout for a container.
	Timeout time.Duration

	// StateDir is a folder for the private state of the runtime, absolute and outside
	// the repository: its sessions survive there when the worktree is removed. Each
	// runtime gets a folder in it. Empty leaves the choice to the runtime, which may
	// keep sessions in the worktree. So does a runtime that takes such a folder with
	// DangerFullAccess alone, for example Gemini CLI: with another sandbox and a
	// ThreadID it begins a new session, and reports so.
	StateDir string

	// Env has additional variables for the agent as "NAME=value". Their values are
	// never reported.
	Env []string

	// Hidden are further secrets, as in an environment: they are masked in what is
	// reported and recorded, and the agent does not get them.
	Hidden []string

	// Labels are for the run record. See RecordLabels.
	Labels agent.Labels

	// Surroundings is the folder around Workdir that containers have besides it,
	// read-only: it has relative links to dependencies. Empty means none.
	Surroundings string

	// Tags are further labels of the requests of Container. They are public.
	Tags map[string]string

	// Commands are for Container.
	Commands Commands
}

// A Listener receives what an attempt reports. All fields may be nil. The functions are
// called in order, one at a time, until Stop returns. The attempt is not done before
// they have returned, so they must be bounded.
type Listener struct {
	// Opened reports the conversation. It repeats if the agent names another thread,
	// or if another runtime takes over.
	Opened func(Conversation)

	// Notice is a line about the life of the attempt, in the words of the worker.
	Notice func(text string)

	// Message is text of the agent.
	Message func(text string)

	// Progress is what the agent does, one or more lines.
	Progress func(text string)

	// ApprovalRequested reports a request that waits for Running.Answer.
	ApprovalRequested func(Approval)

	// ApprovalClosed reports that a request was closed without an answer: it timed
	// out and was declined, or its turn ended.
	ApprovalClosed func(id string)
}

// A Conversation is an open session of a runtime.
type Conversation struct {
	Runtime  string // token
	ThreadID string // to resume it; may be empty
	Model    string // as the runtime reports it; may be empty
	RunID    string // of the run record; empty without one
}

// An Approval is an approval request.
type Approval struct {
	ID      string // a short number, unique among the attempts at the task
	Kind    string // "command", "file_change" or the name of another tool
	Summary string // one line, at most 2100 bytes; "⏎" is where a line ends
	Reason  string // of the agent, one line; may be empty
}

// A Running is an attempt that was started. Its methods may be called concurrently, but
// not from a Listener.
type Running interface {
	// Say gives the agent a message: into the running turn if the runtime can be
	// steered, otherwise as a following turn, which then belongs to the attempt. It
	// waits until the agent has its prompt. ErrOver means that the attempt was done
	// and the message was not delivered. ErrUnsupported means that the backend takes
	// no messages.
	Say(ctx context.Context, text string) (Delivery, error)

	// Answer answers an approval request. ErrNotPending means that no request with
	// this ID waits for an answer.
	Answer(ctx context.Context, approvalID string, d session.Decision) error

	// Interrupt ends the running turn, and with it the attempt unless a message waits.
	Interrupt(ctx context.Context) error

	// Done returns a channel that is closed when the attempt is done.
	Done() <-chan struct{}

	// Outcome waits until the attempt is done and returns how it ended.
	Outcome() Outcome

	// Ask sends a message after the attempt is done and returns the answer. ctx bounds
	// it: at its end the turn is interrupted. ErrOver means that the agent has
	// ended.
	Ask(ctx context.Context, prompt string) (string, error)

	// Stop ends the agent and all its processes, and returns the outcome, which is
	// Canceled if the attempt was not done. The reason is text for the record. A
	// running turn is interrupted first, for at most InterruptGrace. After
	// session.DefaultCloseGrace more, or when ctx ends, the agent is killed. Stopping
	// again returns the same.
	Stop(ctx context.Context, reason string) Outcome
}

// InterruptGrace is how long Stop waits for the end of a turn that it interrupts.
const InterruptGrace = 3 * time.Second

// A Delivery is how a message reached the agent.
type Delivery string

// The deliveries.
const (
	Steered  Delivery = "steered"   // into the running turn
	NextTurn Delivery = "next_turn" // as a following turn
)

// Errors of a [Running].
var (
	// ErrOver: the attempt is done.
	ErrOver = errors.New("the attempt is done")
	// ErrNotPending: no approval request with this ID waits for an answer.
	ErrNotPending = errors.New("no such approval request is pending")
	// ErrUnsupported: the backend cannot do it.
	ErrUnsupported = errors.New("the backend has no way to do it")
)

// A Result is how an attempt ended.
type Result string

// The results.
const (
	// Completed: the last turn ended by itself. This alone does not make a task done.
	Completed Result = "completed"
	// Failed: the agent or a command failed, or could not be started.
	Failed Result = "failed"
	// Canceled: the attempt was stopped or interrupted.
	Canceled Result = "canceled"
	// TimedOut: it took longer than Attempt.Timeout.
	TimedOut Result = "timeout"
	// Quota: the quota of the runtime, and of every fallback, is used up.
	Quota Result = "quota"
	// Unauthenticated: the runtime is not logged in.
	Unauthenticated Result = "authentication"
)

// An Outcome is how an attempt ended, with its evidence.
type Outcome struct {
	Result Result
	Err    error // nil if Completed; its text has no secrets

	// Retryable reports that the agent crashed, so that another attempt can succeed.
	Retryable bool

	Text string // the final answer, or the output of the command

	Conversation
	Usage    *agent.Usage // of the conversation; nil if unknown
	Duration time.Duration

	// Commands are those that the agent was seen to run to their end, without secrets;
	// see closeout.CommandLog for the limits.
	Commands []closeout.Command

	// Plan is the agent's last plan; empty if it reported none.
	Plan []agent.PlanStep

	// Undelivered are messages of Say that the agent never received.
	Undelivered []string

	// Attempts are the runtimes that were tried before, in order.
	Attempts []agent.Attempt
}

// resultOf returns the result of an attempt that ended with err.
func resultOf(err error) Result {
	switch {
	case err == nil:
		return Completed
	case errors.Is(err, agent.ErrTimeout), errors.Is(err, agent.ErrIdleTimeout):
		return TimedOut
	case errors.Is(err, agent.ErrCanceled):
		return Canceled
	case errors.Is(err, agent.ErrQuota):
		return Quota
	case errors.Is(err, agent.ErrAuthentication):
		return Unauthenticated
	}
	return Failed
}
