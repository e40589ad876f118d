package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of an [Event].
type Kind string

// The kinds of events. A consumer ignores kinds it does not know.
const (
	// KindSessionStarted: SessionID and, if the runtime reports it, Model. It can
	// repeat in one run.
	KindSessionStarted Kind = "session_started"
	// KindText: Text of the agent, in MessageID. With Delta it continues the text
	// of the same message.
	KindText Kind = "text"
	// KindThinking: Text of the model's thinking, if the runtime shows it.
	KindThinking Kind = "thinking"
	// KindToolCall: Tool with ID, Name and Input. With Delta it replaces the call of
	// the same ID, of which the agent has reported more, such as its command.
	KindToolCall Kind = "tool_call"
	// KindToolResult: Tool with ID and Output, ExitCode, Failed.
	KindToolResult Kind = "tool_result"
	// KindPlan: the whole Plan.
	KindPlan Kind = "plan"
	// KindFileChange: Changes the agent made to files, or tried to (Failed).
	KindFileChange Kind = "file_change"
	// KindApproval: an approval request, or a denied one (Failed), for Tool; Text
	// is the reason. With ApprovalID it waits for an answer. Policy is the answer of
	// the policy of the session, if that has one.
	KindApproval Kind = "approval"
	// KindQuestion: the agent asks the user Questions. Text, if any, is what it says
	// about all of them. With ApprovalID they wait for answers; Failed, with the reason
	// as Text, reports that they were declined at once.
	KindQuestion Kind = "question"
	// KindRetry: the runtime repeats a model request. Text is the reason, Attempt
	// of MaxAttempts if known, Failure the class of the failure.
	KindRetry Kind = "retry"
	// KindWarning: Text of a problem that did not end the run.
	KindWarning Kind = "warning"
	// KindUsage: Usage until now.
	KindUsage Kind = "usage"
	// KindHeartbeat: a sign of life.
	KindHeartbeat Kind = "heartbeat"
	// KindResult: the end of the turn. If it failed, Failed, Failure and Text (the
	// reason); otherwise Text is the final answer, if the runtime repeats it. The
	// last one of a run counts.
	KindResult Kind = "result"
	// KindRaw: a line that the decoder does not know, in Text. Truncated if the
	// line was too long to be decoded; Text is then its beginning.
	KindRaw Kind = "raw"
)

// EventsVersion is the version of the JSON form of events. New kinds and members do not
// change it.
const EventsVersion = 1

// Kinds lists the kinds of events.
func Kinds() []Kind {
	return []Kind{
		KindSessionStarted, KindText, KindThinking, KindToolCall, KindToolResult, KindPlan, KindFileChange,
		KindApproval, KindQuestion, KindRetry, KindWarning, KindUsage, KindHeartbeat, KindResult, KindRaw,
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

	Questions []Question `json:"questions,omitempty"`

	Attempt     int `json:"attempt,omitempty"`
	MaxAttempts int `json:"max_attempts,omitempty"`

	Failed  bool    `json:"failed,omitempty"`
	Failure Failure `json:"failure,omitempty"`
	// Interrupted reports that the turn of a result was interrupted.
	Interrupted bool `json:"interrupted,omitempty"`

	// ApprovalID identifies an approval request, or questions, of a session.
	ApprovalID string `json:"approval_id,omitempty"`
	// Policy is how the policy of the session answered an approval request.
	Policy *PolicyAnswer `json:"policy,omitempty"`

	// Subagent identifies the subagent that reported the event: it is the ID of the tool
	// call that started it or, with some runtimes, of its thread. It is empty for the
	// main agent.
	Subagent string `json:"subagent,omitempty"`

	// Background is the number of open background tasks, if the runtime reports
	// it; only in KindHeartbeat events.
	Background *int `json:"background,omitempty"`

	// Truncated reports that the agent's line was cut or too long, so the event
	// has only the beginning of the line.
	Truncated bool `json:"truncated,omitempty"`
	// Size is the length of a truncated line in bytes, LineType the member "type"
	// at its beginning.
	Size     int64  `json:"size,omitempty"`
	LineType string `json:"line_type,omitempty"`
}

// A Tool is a tool call or its result.
type Tool struct {
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Output Payload         `json:"output,omitzero"`
	// ExitCode is the exit code of a command, if the runtime reports it.
	ExitCode *int `json:"exit_code,omitempty"`

	// What an approval request would allow, in the terms of all runtimes; empty in other
	// events. Kind is empty if that is not known. Files are all files that the tool
	// names, as the agent writes them, and Command is the line of a shell, of
	// ToolExecute. Each is empty if it is not known completely.
	Kind    ToolKind `json:"kind,omitempty"`
	Files   []string `json:"files,omitempty"`
	Command string   `json:"command,omitempty"`
}

// ToolKind is the kind of thing that a tool does.
type ToolKind string

// The values of [ToolKind].
const (
	ToolRead    ToolKind = "read"    // reads or searches files
	ToolEdit    ToolKind = "edit"    // writes files
	ToolDelete  ToolKind = "delete"  // removes or moves files, and maybe writes others
	ToolExecute ToolKind = "execute" // runs a command
	ToolFetch   ToolKind = "fetch"   // reads from the network
	ToolOther   ToolKind = "other"   // anything else, such as a tool of an MCP server
)

// ToolKinds lists the values of [ToolKind].
func ToolKinds() []ToolKind {
	return []ToolKind{ToolRead, ToolEdit, ToolDelete, ToolExecute, ToolFetch, ToolOther}
}

// A PolicyAnswer is how a policy answers an approval request. Decision is accept,
// decline or, where the user answers, ask. Rule is the number of the rule, counted from
// 1, or 0 for the default of the policy.
type PolicyAnswer struct {
	Decision string `json:"decision"`
	Rule     int    `json:"rule"`
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
	// Diff has the hunks of a unified diff of the file, without its headers. It is
	// empty if the runtime does not report them. See [FileChange.SetDiff].
	Diff string `json:"diff,omitempty"`
	// Truncated reports that Diff lacks its last lines.
	Truncated bool `json:"truncated,omitempty"`
}

// MaxDiff is the maximum length of FileChange.Diff, in bytes.
const MaxDiff = 64 << 10

// SetDiff sets Diff to hunks, or to as many of its first lines as [MaxDiff] allows.
func (c *FileChange) SetDiff(hunks string) {
	if c.Truncated = len(hunks) > MaxDiff; c.Truncated {
		// A part of a line could hide a secret from those who mask it.
		hunks = strings.Clone(hunks[:strings.LastIndexByte(hunks[:MaxDiff], '\n')+1])
	}
	c.Diff = hunks
}

// SetWhole sets Diff to the hunk of a whole file with a text: it adds all lines, or removes
// them if Action is delete. The limit of [FileChange.SetDiff] applies.
func (c *FileChange) SetWhole(text string) {
	if text == "" {
		c.SetDiff("")
		return
	}
	count := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		count++
	}
	sign, header := "+", "@@ -0,0 +1,%d @@\n"
	if c.Action == "delete" {
		sign, header = "-", "@@ -1,%d +0,0 @@\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, header, count)
	for line := range strings.Lines(text) {
		if b.WriteString(sign + line); b.Len() > MaxDiff {
			break // SetDiff cuts it
		}
	}
	if b.Len() <= MaxDiff && !strings.HasSuffix(text, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	c.SetDiff(b.String())
}

// Usage is what a run consumed, in tokens. Input includes Cached; Output
// includes Reasoning.
type Usage struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	// CostUSD is the cost in US dollars, nil if unknown.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Cumulative reports that the numbers cover the whole session, because the
	// runtime does not report those of the run.
	Cumulative bool `json:"cumulative,omitempty"`
	// Context is how much of the model's context is in use now, and ContextSize how much
	// there can be, in tokens; 0 if the runtime does not report it.
	Context     int64 `json:"context,omitempty"`
	ContextSize int64 `json:"context_size,omitempty"`
}

// Failure is the class of a failure that a runtime reported.
type Failure string

// The classes of failures. Empty is any other failure.
const (
	FailureAuthentication Failure = "authentication"
	FailureQuota          Failure = "quota"
	// FailureIdleTimeout: the runtime itself ended a turn without progress.
	FailureIdleTimeout Failure = "idle_timeout"
	// The answer is not whole: it has reached the limit of tokens or of requests to the
	// model, or the model refuses to answer.
	FailureMaxTokens   Failure = "max_tokens"
	FailureMaxRequests Failure = "max_requests"
	FailureRefusal     Failure = "refusal"
)

// Clone returns a copy of e that shares no memory with the decoder.
func (e *Event) Clone() *Event {
	c := *e
	if e.Tool != nil {
		t := *e.Tool
		t.Input = append(json.RawMessage(nil), e.Tool.Input...)
		t.Output = e.Tool.Output.clone()
		t.Files = slices.Clone(e.Tool.Files)
		if e.Tool.ExitCode != nil {
			code := *e.Tool.ExitCode
			t.ExitCode = &code
		}
		c.Tool = &t
	}
	c.Plan = append([]PlanStep(nil), e.Plan...)
	c.Changes = append([]FileChange(nil), e.Changes...)
	c.Questions = cloneQuestions(e.Questions)
	if e.Policy != nil {
		p := *e.Policy
		c.Policy = &p
	}
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
