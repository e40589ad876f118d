package session

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session"
)

// chatRequest is what the agent waits for: an approval, or answers to questions.
type chatRequest struct {
	approval session.Approval
	asked    *session.QuestionRequest // nil for an approval request
	answers  [][]string               // to the first questions
	over     <-chan struct{}
	reply    chan<- chatReply
}

// chatReply is what the user answers: a decision, or answers to all questions.
type chatReply struct {
	decision session.Decision
	answers  [][]string
}

// isOver returns a channel that is closed when the request is over; nil for no request.
func (r *chatRequest) isOver() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.over
}

// question returns the question that is to be answered now; nil for none.
func (r *chatRequest) question() *agent.Question {
	if r.asked == nil {
		return nil
	}
	return &r.asked.Questions[len(r.answers)]
}

// show shows a request.
func (c *chat) show(r *chatRequest) {
	if r.asked == nil {
		c.screen.Line("[approval request] " + cmdline.OneWord(requestText(r.approval)))
		return
	}
	c.screen.EndLine()
	io.WriteString(c.screen, questionText(*r.asked))
}

// declineWord refuses to answer questions.
const declineWord = "/decline"

// prompt shows the possible answers on a separate line.
func (c *chat) prompt(t *chatTurn) {
	c.screen.EndLine()
	r := t.open
	if r.asked == nil {
		io.WriteString(c.screen, "allow it? [y]es, [a]lways here, [n]o, [c]ancel the turn, then Enter: ")
		return
	}
	what := "answer"
	if len(r.asked.Questions) > 1 {
		what = fmt.Sprintf("answer %d of %d", len(r.answers)+1, len(r.asked.Questions))
	}
	var ways []string
	q := r.question()
	switch {
	case len(q.Options) > 0 && q.Multiple:
		ways = append(ways, "numbers with commas")
	case len(q.Options) > 0:
		ways = append(ways, "a number")
	}
	if q.FreeText || len(q.Options) == 0 {
		ways = append(ways, "your text")
	}
	if q.Optional {
		ways = append(ways, "nothing")
	}
	fmt.Fprintf(c.screen, "%s: %s, or %s, then Enter: ", what, strings.Join(ways, ", "), declineWord)
}

// decisionFor returns the decision that a typed line stands for, "" for none.
func decisionFor(line string) session.Decision {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return session.Accept
	case "a", "always":
		return session.AcceptForSession
	case "n", "no":
		return session.Decline
	case "c", "cancel":
		return session.Cancel
	}
	return ""
}

// approve is the callback of the session for approval requests.
func (c *chat) approve(ctx context.Context, a session.Approval) session.Decision {
	defer c.terminal.restoreInPanic()
	if !c.inTurn.Load() { // another process has sent the message
		c.screen.Line("[approval request] " + cmdline.OneWord(requestText(a)) + "; answer it with \"session approve\"")
		return ""
	}
	return c.request(ctx, &chatRequest{approval: a}).decision
}

// consult is the callback of the session for questions.
func (c *chat) consult(ctx context.Context, q session.QuestionRequest) [][]string {
	defer c.terminal.restoreInPanic()
	if !c.inTurn.Load() { // as in approve
		c.screen.EndLine()
		io.WriteString(c.screen, questionText(q))
		c.screen.Line("answer it with \"session answer\"")
		return nil
	}
	r := c.request(ctx, &chatRequest{asked: &q})
	if r.decision != "" {
		_ = c.session.Answer(ctx, q.ID, r.decision) // unless the request is over
	}
	return r.answers
}

// request passes a request on to the turn and waits for the user's reply, which is empty
// if the request is over before.
func (c *chat) request(ctx context.Context, r *chatRequest) chatReply {
	reply := make(chan chatReply, 1)
	r.over, r.reply = ctx.Done(), reply
	select {
	case c.requests <- r:
	case <-ctx.Done():
		return chatReply{}
	}
	select {
	case given := <-reply:
		return given
	case <-ctx.Done():
		return chatReply{}
	}
}
