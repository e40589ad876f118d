package agent

import (
	"encoding/json"
)

// Kind says what an [Event] reports.
type Kind string

// The kinds of events. A consumer ignores kinds it does not know.
const (
	// KindSessionStarted: SessionID and, where the runtime tells, Model. It can
	// repeat in one run.
	KindSessionStarted Kind = "session_started"
	// KindText: Text the agent says, in MessageID. With Delta it continues the
	// text of the same message.
	KindText Kind = "text"
	// KindThinking: Text the model thought, where the runtime shows it.
	KindThinking Kind = "thinking"
	// KindToolCall: Tool with ID, Name and Input.
	KindToolCall Kind = "tool_call"
	// KindToolResult: Tool with ID and Output, ExitCode, Failed.
	KindToolResult Kind = "tool_result"
	// KindPlan: Plan, whole each time.
	KindPlan Kind = "plan"
	// KindFileChange: Changes the agent made to files.
	KindFileChange Kind = "file_change"
	// KindApproval: the agent asked for permission, or was denied it (Failed),
	// for Tool; Text says why. With ApprovalID it waits for an answer.
	KindApproval Kind = "approval"
	// KindRetry: the runtime tries a model request again. Text says why,
	// Attempt of MaxAttempts where known, Failure what kind of failure it was.
	KindRetry Kind = "retry"
	// KindWarning: Text of something that did not end the run.
	KindWarning Kind = "warning"
	// KindUsage: Usage up to now.
	KindUsage Kind = "usage"
	// KindHeartbeat: nothing but a sign of life.
	KindHeartbeat Kind = "heartbeat"
	// KindResult: the turn is over. Failed, Failure and Text (the reason) when
	// it failed; Text is the final answer, where the runtime repeats it, when
	// it did not. The last one of a run counts.
	KindResult Kind = "result"
	// KindRaw: a line the decoder does not know, in Text. Truncated when the
	// line was too long to be decoded; Text is then its head.
	KindRaw Kind = "raw"
)

// Kinds lists the kinds of events.
func Kinds() []Kind {
	return []Kind{
		KindSessionStarted, KindText, KindThinking, KindToolCall, KindToolResult, KindPlan, KindFileChange,
		KindApproval, KindRetry, KindWarning, KindUsage, KindHeartbeat, KindResult, KindRaw,
	}
}

// An Event is one thing an agent reported, the same for every runtime. Which
// fields are set depends on Kind. Its JSON form is one line of the output
// format "events".
//
// Events handed to a callback share memory with the decoder: what a pointer,
// slice or [Payload] of one refers to is valid only during the call. Its strings
// may be kept. [Event.Clone] makes a lasting copy.
type Event struct {
	Kind Kind `json:"kind"`

	// Turn is the number of the turn of a session that the event belongs to,
	// counted from 1. It is 0 outside a turn, and in a run.
	Turn int `json:"turn,omitempty"`

	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`

	MessageID string `json:"message_id,omitempty"`
	Text      string `json:"text,omitempty"`
	Delta     bool   `json:"delta,omitempty"`

	Tool    *Tool        `json:"tool,omitempty"`
	Plan    []PlanStep   `json:"plan,omitempty"`
	Changes []FileChange `json:"changes,omitempty"`
	Usage   *Usage       `json:"usage,omitempty"`

	Attempt     int `json:"attempt,omitempty"`
	MaxAttempts int `json:"max_attempts,omitempty"`

	Failed  bool    `json:"failed,omitempty"`
	Failure Failure `json:"failure,omitempty"`
	// Interrupted says of a result that its turn was interrupted.
	Interrupted bool `json:"interrupted,omitempty"`

	// ApprovalID names a question for permission, which a session answers.
	ApprovalID string `json:"approval_id,omitempty"`

	// Subagent is the ID of the tool call that started the agent which
	// reported this, empty for the main agent.
	Subagent string `json:"subagent,omitempty"`

	// Background is the number of background tasks still open, where the
	// runtime reports it; set on KindHeartbeat events only.
	Background *int `json:"background,omitempty"`

	// Truncated says that the agent's line was cut or too long to be read, so
	// that the event holds what its head says.
	Truncated bool `json:"truncated,omitempty"`
	// Size is the length of a truncated line in bytes, LineType the member
	// "type" that its head seems to have.
	Size     int64  `json:"size,omitempty"`
	LineType string `json:"line_type,omitempty"`
}

// A Tool is a tool call or its result.
type Tool struct {
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Output Payload         `json:"output,omitzero"`
	// ExitCode is the exit code of a command, where the runtime reports it.
	ExitCode *int `json:"exit_code,omitempty"`
}

// A PlanStep is one step of an agent's plan. Status is pending, in_progress or
// completed.
type PlanStep struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// A FileChange is a file the agent changed. Action is add, update or delete.
type FileChange struct {
	Path   string `json:"path"`
	Action string `json:"action"`
}

// Usage is what a run consumed, in tokens. Input includes Cached; Output
// includes Reasoning.
type Usage struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	// CostUSD is the cost in US dollars, nil where the runtime does not tell.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Cumulative says that the numbers cover the whole session, because the
	// runtime does not tell those of the run apart.
	Cumulative bool `json:"cumulative,omitempty"`
}

// Failure is the class of a failure a runtime reported, as it stands in events.
type Failure string

// The classes of failures. Empty is any other failure.
const (
	FailureAuthentication Failure = "authentication"
	FailureQuota          Failure = "quota"
)

// Clone returns a copy of e that shares no memory with the decoder.
func (e *Event) Clone() *Event {
	c := *e
	if e.Tool != nil {
		t := *e.Tool
		t.Input = append(json.RawMessage(nil), e.Tool.Input...)
		t.Output = e.Tool.Output.clone()
		if e.Tool.ExitCode != nil {
			code := *e.Tool.ExitCode
			t.ExitCode = &code
		}
		c.Tool = &t
	}
	c.Plan = append([]PlanStep(nil), e.Plan...)
	c.Changes = append([]FileChange(nil), e.Changes...)
	if e.Usage != nil {
		u := *e.Usage
		if e.Usage.CostUSD != nil {
			cost := *e.Usage.CostUSD
			u.CostUSD = &cost
		}
		c.Usage = &u
	}
	if e.Background != nil {
		n := *e.Background
		c.Background = &n
	}
	return &c
}
