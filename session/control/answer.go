package control

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// answer answers an approval request, or declines questions; "" is the only request that
// is open.
func (h *held) answer(ctx context.Context, id string, d session.Decision) error {
	var open []string
	for _, a := range h.s.Approvals() {
		open = append(open, a.ID)
	}
	for _, q := range h.s.Questions() {
		open = append(open, q.ID)
	}
	id, err := theRequest("approval request", id, open)
	if err != nil {
		return err
	}
	turn := int(h.turn.Load())
	if err := h.s.Answer(ctx, id, d); err != nil {
		return closed("approval request", err)
	}
	h.served.record(LogRecord{Turn: turn, Answered: &Answered{Approval: id, Decision: d}})
	return nil
}

// answerQuestions answers questions; "" is the only ones that are open.
func (h *held) answerQuestions(ctx context.Context, id string, answers [][]string) error {
	var open []string
	for _, q := range h.s.Questions() {
		open = append(open, q.ID)
	}
	id, err := theRequest("question", id, open)
	if err != nil {
		return err
	}
	return closed("question", h.s.AnswerQuestions(ctx, id, answers))
}

// theRequest returns id or, if that is empty, the only one of open.
func theRequest(what, id string, open []string) (string, error) {
	switch {
	case id != "":
		return id, nil
	case len(open) == 0:
		return "", tooLate("no " + what + " is open")
	case len(open) > 1:
		return "", agent.Usagef("%d requests are open; give the ID of one", len(open))
	}
	return open[0], nil
}

// closed returns the error of an answer, which says so if the request was not open.
func closed(what string, err error) error {
	if errors.Is(err, session.ErrTooLate) {
		return tooLate("the " + what + " is not open: it was answered, has timed out, or its turn has ended")
	}
	return err
}

func tooLate(text string) error {
	return &agent.Error{Kind: agent.ErrAgent, Err: &because{text, session.ErrTooLate}}
}
