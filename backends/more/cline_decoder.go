package more

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// clineDecoder reads the lines of `cline --json`. They do not name the session.
type clineDecoder struct {
	iteration int // of the model, whose messages have no IDs
	failure   agent.Failure
	ended     bool
}

type clineLine struct {
	Type    string     `json:"type"`
	Event   clineEvent `json:"event"`   // agent_event
	Message string     `json:"message"` // error, run_aborted

	FinishReason string `json:"finishReason"` // run_result
	Text         string `json:"text"`
	Model        struct {
		ID string `json:"id"`
	} `json:"model"`
	Usage struct {
		Input  int64   `json:"inputTokens"` // with those of the cache
		Output int64   `json:"outputTokens"`
		Cached int64   `json:"cacheReadTokens"`
		Cost   float64 `json:"totalCost"`
	} `json:"aggregateUsage"`
}

type clineEvent struct {
	Type        string `json:"type"`
	Iteration   int    `json:"iteration"`
	ContentType string `json:"contentType"`
	Text        string `json:"text"`
	Reasoning   string `json:"reasoning"`

	ToolName   string          `json:"toolName"`
	ToolCallID string          `json:"toolCallId"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`

	Error      json.RawMessage `json:"error"` // of an error an object, of a tool a text
	ErrorClass string          `json:"errorClass"`
}

// clineOutput is what a tool answers for one of its commands or files.
type clineOutput struct {
	Result  string `json:"result"`
	Error   string `json:"error"`
	Success bool   `json:"success"`
}

func (d *clineDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var l clineLine
	if json.Unmarshal(raw, &l) != nil {
		return events, false
	}
	switch l.Type {
	case "hook_event":
	case "agent_event":
		return d.event(&l.Event, events)
	case "run_result":
		return d.result(&l, events), true
	case "run_aborted", "error": // the latter also repeats a result
		if !d.ended {
			d.ended = true
			e := failed(l.Message)
			e.Failure = d.failure
			events = append(events, e)
		}
	default:
		return events, false
	}
	return events, true
}

func (d *clineDecoder) event(e *clineEvent, events []agent.Event) ([]agent.Event, bool) {
	id := strconv.Itoa(d.iteration)
	switch e.Type {
	case "iteration_start":
		d.iteration = e.Iteration
	case "content_start":
		if e.ContentType == "tool" {
			events = append(events, toolCall(e.ToolCallID, e.ToolName, e.Input))
		}
	case "content_end":
		switch e.ContentType {
		case "text":
			events = append(events, text(id, e.Text))
		case "reasoning":
			events = append(events, thinking(id, e.Reasoning))
		case "tool":
			output, failed := clineResult(e.Output)
			events = append(events, toolResult(e.ToolCallID, output, failed))
		}
	case "error":
		var problem struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &problem) != nil {
			return events, false
		}
		if e.ErrorClass == "auth" {
			d.failure = agent.FailureAuthentication
		}
		events = append(events, agent.Event{Kind: agent.KindWarning, Text: problem.Message, Failure: d.failure})
	case "content_update", "iteration_end", "usage", "done": // parts, and what the result repeats
	default:
		return events, false
	}
	return events, true
}

// result appends the events of the end of a run.
func (d *clineDecoder) result(l *clineLine, events []agent.Event) []agent.Event {
	d.ended = true
	events = append(events, agent.Event{Kind: agent.KindSessionStarted, Model: l.Model.ID})
	u := agent.Usage{Input: l.Usage.Input, Cached: l.Usage.Cached, Output: l.Usage.Output}
	if l.Usage.Cost > 0 {
		u.CostUSD = &l.Usage.Cost
	}
	events = append(events, used(u)...)
	if l.FinishReason != "completed" {
		reason := "the run ended early: " + l.FinishReason
		if l.FinishReason == "error" {
			reason = l.Text
		}
		e := failed(reason)
		e.Failure = d.failure
		return append(events, e)
	}
	return append(events, agent.Event{Kind: agent.KindResult, Text: l.Text})
}

// clineResult returns the text of a tool's answer, which has one or several parts, and
// whether one of them failed.
func clineResult(raw json.RawMessage) (output string, failed bool) {
	var parts []clineOutput
	if json.Unmarshal(raw, &parts) != nil {
		var part clineOutput
		if json.Unmarshal(raw, &part) != nil {
			return valueOf(raw), false
		}
		parts = append(parts, part)
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Result+p.Error)
		failed = failed || !p.Success
	}
	return strings.Join(texts, "\n"), failed
}
