package control

import (
	"encoding/json"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// protocolVersion is the version of calls and replies. The protocol is described in
// docs/sessions.md.
const protocolVersion = 2

// The operations of a call.
const (
	opShow      = "show"
	opSend      = "send"
	opSteer     = "steer"
	opInterrupt = "interrupt"
	opAnswer    = "answer"
	opWatch     = "watch"
	opStop      = "stop"
)

// What a call of opSend waits for, besides that the message is queued.
const (
	untilDelivered = "delivered" // that the agent has got it
	untilOver      = "over"      // the end of the turn
)

// A call is what a client asks of the process that holds a session.
type call struct {
	Version     int                `json:"v"`
	Operation   string             `json:"op"`
	Text        string             `json:"text,omitempty"`
	Attachments []agent.Attachment `json:"attachments,omitempty"`
	Delivery    engine.Delivery    `json:"delivery,omitempty"`
	Timeout     time.Duration      `json:"timeout,omitempty"`
	TurnTimeout time.Duration      `json:"turn_timeout,omitempty"`
	Wait        string             `json:"wait,omitempty"`
	Approval    string             `json:"approval,omitempty"`
	Decision    session.Decision   `json:"decision,omitempty"`
	Answers     [][]string         `json:"answers,omitempty"`
	Last        int                `json:"last,omitempty"`
	Follow      bool               `json:"follow,omitempty"`
	Until       session.State      `json:"until,omitempty"`
	Reason      string             `json:"reason,omitempty"`
}

func (c *call) message() Message {
	return Message{Text: c.Text, Attachments: c.Attachments, Delivery: c.Delivery, Timeout: c.Timeout, TurnTimeout: c.TurnTimeout}
}

// A reply is a line of the answer. Which fields are set depends on the call.
type reply struct {
	Version int             `json:"v"`
	Record  json.RawMessage `json:"record,omitempty"`
	Missed  int64           `json:"missed,omitempty"`
	Turn    int             `json:"turn,omitempty"`
	Steered bool            `json:"steered,omitempty"`
	Idle    bool            `json:"idle,omitempty"` // there was no turn to interrupt
	Status  *Status         `json:"status,omitempty"`
	Result  *Result         `json:"result,omitempty"`
	Failure *Failure        `json:"failure,omitempty"`
	Last    bool            `json:"last,omitempty"` // nothing follows

	peer int // PID of the process that has sent the last one
}

// A LogRecord is one thing that happened in a session.
type LogRecord struct {
	// Number counts the records of a session from 1.
	Number int64 `json:"number"`
	// Turn is the turn that the record belongs to, counted from 1; 0 for
	// none.
	Turn int       `json:"turn,omitempty"`
	Time time.Time `json:"time"`

	// One of these is set.
	Event       *agent.Event           `json:"event,omitempty"`
	Message     string                 `json:"message,omitempty"`     // was sent
	Attachments []agent.AttachmentInfo `json:"attachments,omitempty"` // of Message
	Ended       *Result                `json:"ended,omitempty"`       // the turn is over
	Answered    *Answered              `json:"answered,omitempty"`
	Stopped     string                 `json:"stopped,omitempty"` // the session is over, and why
	Warning     string                 `json:"warning,omitempty"`
}

// Answered is an answer to an approval request or to questions.
type Answered struct {
	Approval string `json:"approval"`
	// Decision is that of the user; empty for answers to questions.
	Decision session.Decision `json:"decision,omitempty"`
	// Answers are those to questions, in order, without secrets.
	Answers [][]string `json:"answers,omitempty"`
}

// A Result is how a turn ended.
type Result struct {
	agent.Result
	DurationMS int64    `json:"duration_ms"`
	Failure    *Failure `json:"failure,omitempty"`
}

func newResult(r agent.Result, err error) *Result {
	return &Result{Result: r, DurationMS: r.Duration.Milliseconds(), Failure: failureOf(err)}
}

// outcome returns what session.Turn.Wait returned.
func (r *Result) outcome() (agent.Result, error) {
	result := r.Result
	result.Duration = time.Duration(r.DurationMS) * time.Millisecond
	return result, r.Failure.err()
}

// A Status describes the current state of a session.
type Status struct {
	Entry
	Waiting int  `json:"waiting"` // messages that wait for their turn
	Steers  bool `json:"steers"`
	// Running reports that the agent's process is known to be alive.
	Running bool `json:"running"`
	// Approvals are the approval requests that wait for an answer, oldest first.
	Approvals []session.Approval `json:"approvals"`
	// Questions are the questions that wait for answers, oldest first.
	Questions []session.QuestionRequest `json:"questions"`
}
