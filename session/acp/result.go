package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// reasons are how turns end that have no whole answer.
var reasons = map[string]string{
	"max_tokens":        "the answer has reached the limit of tokens",
	"max_turn_requests": "the turn has reached the limit of requests to the model",
	"refusal":           "the agent refuses to answer",
	"":                  "the agent gives no reason for the end of the turn",
}

// unfinished are the classes of these ends.
var unfinished = map[string]agent.Failure{
	"max_tokens":        agent.FailureMaxTokens,
	"max_turn_requests": agent.FailureMaxRequests,
	"refusal":           agent.FailureRefusal,
}

// finish reports the end of a turn, m, which is nil when the agent did not end it. One
// that is late has no result.
func (e *Engine) finish(t *turn, m *jsonrpc.Message) {
	var result promptResult
	err := refused(m.Decode(&result))
	e.mu.Lock()
	t.over = true
	if t.late {
		e.unwanted--
		e.mu.Unlock()
		return
	}
	interrupted := e.interrupted
	e.running = false
	e.mu.Unlock()
	e.withdraw()
	if m == nil {
		return
	}
	consumed := e.count(&result)
	silent, failed, answer := !e.decoder.spoken, e.decoder.failed, e.decoder.answer
	e.decoder.reset()
	if consumed {
		e.emitUsage()
	}
	event := agent.Event{Kind: agent.KindResult}
	switch {
	case err != nil:
		event.Failed, event.Interrupted, event.Text = true, interrupted, err.Error()
		if refusal, ok := errors.AsType[*refusal](err); ok {
			event.Failure = e.failure(refusal)
		}
	case result.StopReason == "end_turn" && failed:
		event.Failed, event.Text = true, cmp.Or(strings.TrimSpace(answer), "the agent has an error")
		event.Failure = e.failure(&refusal{text: event.Text})
	case result.StopReason == "end_turn" && e.SilenceFails && silent && !consumed:
		event.Failed, event.Text = true, "the model has not answered"
	case result.StopReason == "end_turn":
		if e.AnswerFailure == nil || answer == "" {
			break
		}
		if failure, failed := e.AnswerFailure(answer); failed {
			event.Failed, event.Failure, event.Text = true, failure, answer
		}
	case result.StopReason == "cancelled":
		event.Failed, event.Interrupted = true, true
	default:
		event.Failed, event.Failure, event.Text = true, unfinished[result.StopReason], reasons[result.StopReason]
		if event.Text == "" {
			event.Text = "the turn has ended: " + result.StopReason
		}
	}
	e.emit(&event)
}

// cancelLate cancels the turn of a message that was given up while it was written. The
// next message waits for that, or it would be the one that is cancelled.
func (e *Engine) cancelLate() {
	written := make(chan struct{})
	e.lateCancel = written
	go func() {
		defer close(written)
		_ = e.conn.Notify(context.Background(), methodCancel, cancelParams{e.sessionID}) // an agent that has ended needs none
	}()
}

// refusal is an answer of the agent that is an error.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", r.text, r.code) }

// Codes of errors. Agents also use the status of the model's answer, as it is.
const (
	codeCancelled    = -32800
	codeAuthRequired = -32000
)

func (e *Engine) failure(r *refusal) agent.Failure {
	if e.Failure != nil {
		if failure := e.Failure(r.Error()); failure != "" {
			return failure
		}
	}
	switch r.code {
	case codeAuthRequired, 401, 403:
		return agent.FailureAuthentication
	case 429:
		return agent.FailureQuota
	}
	return ""
}

// refused makes a refusal one that the user can read. Other errors stay as they are.
func refused(err error) error {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	text := answer.Message
	var inner struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(text), &inner) == nil && inner.Error.Message != "" { // the model's answer
		text = inner.Error.Message
	}
	if detail := detailOf(answer.Data); detail != "" && detail != text {
		text += ": " + detail
	}
	return &refusal{answer.Code, text}
}

// detailOf returns the cause that the data of an error holds, which can be of any shape.
func detailOf(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members) // or it has no details
	for _, name := range []string{"details", "error", "message"} {
		if json.Unmarshal(members[name], &text) == nil && text != "" {
			return text
		}
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(members[name], &inner) == nil && inner.Message != "" {
			return inner.Message
		}
	}
	return ""
}
