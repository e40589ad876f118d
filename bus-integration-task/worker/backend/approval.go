package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// Bounds in bytes.
const (
	maxSummary  = 500  // of Approval.Reason and of summaries in reports
	maxApproval = 2000 // of Approval.Summary, without the note that it is cut
)

// A pendingApproval is an approval request that waits for an answer.
type pendingApproval struct {
	conversation *conversation
	id           string // in its session
}

func (r *attempt) Answer(ctx context.Context, approvalID string, d session.Decision) error {
	if _, err := session.ParseDecision(string(d)); err != nil {
		return err
	}
	r.mu.Lock()
	p, ok := r.pending[approvalID]
	delete(r.pending, approvalID)
	r.mu.Unlock()
	if !ok {
		return ErrNotPending
	}
	err := p.conversation.session.Answer(ctx, p.id, d)
	if errors.Is(err, session.ErrTooLate) {
		return ErrNotPending
	}
	return err
}

// describe returns the approval request a as number n of the task.
func describe(n int, a session.Approval, mask *runner.Masker) Approval {
	asked := Approval{ID: strconv.Itoa(n), Kind: "tool", Reason: line(mask.Text(a.Reason), maxSummary)}
	if a.Tool != nil {
		asked.Kind = line(a.Tool.Name, 100)
		asked.Summary = ofApproval(mask.Text(summary(a.Tool)))
	}
	return asked
}

// ofApproval returns what is to be approved as one line that shows where a line ends, which
// ends a comment too, and how much of it is left out.
func ofApproval(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ ")
	short := line(text, maxApproval)
	if !strings.HasSuffix(short, "…") {
		return short
	}
	return fmt.Sprintf("%s (%d bytes in all)", short, len(text))
}

// summary returns what a tool call does: its command, or else its name and input.
func summary(tool *agent.Tool) string {
	if command := commandOf(tool); command != "" {
		return command
	}
	return strings.TrimSpace(tool.Name + " " + string(tool.Input))
}

// commandOf returns the command that a tool call runs; "" for another tool.
func commandOf(tool *agent.Tool) string {
	var input struct {
		Command json.RawMessage `json:"command"`
		Cmd     json.RawMessage `json:"cmd"`
	}
	if json.Unmarshal(tool.Input, &input) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{input.Command, input.Cmd} {
		var text string
		var words []string
		switch {
		case raw == nil:
		case json.Unmarshal(raw, &text) == nil:
			return text
		case json.Unmarshal(raw, &words) == nil:
			return strings.Join(words, " ")
		}
	}
	return ""
}
