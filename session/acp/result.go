package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/agent"
)

// promptResult is what an engine needs of the answer to a prompt.
type promptResult struct {
	StopReason sdk.StopReason `json:"stopReason"`
	Meta       struct {
		Quota struct {
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// reasons are how turns end that have no whole answer.
var reasons = map[sdk.StopReason]string{
	sdk.StopReasonMaxTokens:       "the answer has reached the limit of tokens",
	sdk.StopReasonMaxTurnRequests: "the turn has reached the limit of requests to the model",
	sdk.StopReasonRefusal:         "the agent refuses to answer",
	"":                            "the agent gives no reason for the end of the turn",
}

// finish reports the end of a turn. A turn whose message was not sent, or that
// the agent did not end, has no result.
func (e *Engine) finish(r *request, result promptResult, err error) {
	e.mu.Lock()
	interrupted := e.interrupted
	e.running = false
	tokens := result.Meta.Quota.Tokens
	e.usage.Input = sum(e.usage.Input, tokens.Input)
	e.usage.Output = sum(e.usage.Output, tokens.Output)
	usage := e.usage
	e.mu.Unlock()
	e.withdraw()
	if err != nil && r.err != nil && e.wire.late() {
		e.cancelLate()
	}
	if !r.answered.Load() || err != nil && r.err != nil {
		return
	}
	silent := !e.decoder.spoken
	e.decoder.reset()
	if tokens.Input > 0 || tokens.Output > 0 {
		e.emit(&agent.Event{Kind: agent.KindUsage, Usage: &usage})
	}
	event := agent.Event{Kind: agent.KindResult}
	switch {
	case err != nil:
		event.Failed, event.Interrupted, event.Text = true, interrupted, err.Error()
		if refusal, ok := errors.AsType[*refusal](err); ok {
			event.Failure = refusal.failure()
		}
	case result.StopReason == sdk.StopReasonEndTurn && e.SilenceFails && silent && tokens.Input == 0 && tokens.Output == 0:
		event.Failed, event.Text = true, "the model has not answered"
	case result.StopReason == sdk.StopReasonEndTurn:
	case result.StopReason == sdk.StopReasonCancelled:
		event.Failed, event.Interrupted = true, true
	default:
		event.Failed, event.Text = true, reasons[result.StopReason]
		if event.Text == "" {
			event.Text = "the turn has ended: " + string(result.StopReason)
		}
	}
	e.emit(&event)
}

// sum adds what an agent says that it has consumed, which can be anything.
func sum(total, more int64) int64 {
	if more < 0 || total > math.MaxInt64-more {
		return total
	}
	return total + more
}

// cancelLate cancels the turn of a message that was given up while it was written:
// the agent can still get it. The next message waits for that, or it would be the
// one that is cancelled.
func (e *Engine) cancelLate() {
	cancel := struct {
		Version string                 `json:"jsonrpc"`
		Method  string                 `json:"method"`
		Params  sdk.CancelNotification `json:"params"`
	}{"2.0", sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(e.sessionID)}}
	line, err := json.Marshal(cancel)
	if err != nil {
		return
	}
	written := make(chan struct{})
	e.lateCancel = written
	go func() {
		defer close(written)
		_, _ = e.wire.input.Write(context.Background(), line) // an agent that is gone needs none
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
	codeMethodNotFound = -32601
	codeAuthRequired   = -32000
)

func (r *refusal) failure() agent.Failure {
	switch r.code {
	case codeAuthRequired, 401, 403:
		return agent.FailureAuthentication
	case 429:
		return agent.FailureQuota
	}
	return ""
}

// refused makes the SDK's error one that people can read.
func refused(err error) error {
	answer, ok := errors.AsType[*sdk.RequestError](err)
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
	if data, ok := answer.Data.(map[string]any); ok {
		for _, member := range []string{"details", "error"} {
			if detail, ok := data[member].(string); ok && detail != "" {
				text += ": " + detail
				break
			}
		}
	}
	return &refusal{answer.Code, text}
}
