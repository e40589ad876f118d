package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// A QuestionRequest is what the agent asks the user at once: one or more questions. Its
// turn waits for the answers.
type QuestionRequest struct {
	ID        string           `json:"id"`
	Text      string           `json:"text,omitempty"` // about all questions; can be empty
	Questions []agent.Question `json:"questions"`
}

// Parse returns the answers that the user means by texts, one for each question in
// order: see [agent.Question.Parse]. An error is of kind agent.ErrUsage.
func (q QuestionRequest) Parse(texts []string) ([][]string, error) {
	if err := q.checkCount(len(texts)); err != nil {
		return nil, err
	}
	answers := make([][]string, len(texts))
	for i, text := range texts {
		var err error
		if answers[i], err = q.Questions[i].Parse(text); err != nil {
			return nil, q.about(i, err)
		}
	}
	return answers, nil
}

// Check returns why answers, one for each question in order, do not answer the questions.
// An error is of kind agent.ErrUsage.
func (q QuestionRequest) Check(answers [][]string) error {
	if err := q.checkCount(len(answers)); err != nil {
		return err
	}
	for i, answer := range answers {
		if err := q.Questions[i].Check(answer); err != nil {
			return q.about(i, err)
		}
	}
	return nil
}

func (q QuestionRequest) checkCount(answers int) error {
	if want := len(q.Questions); answers != want {
		return agent.Usagef("the agent asks %s; give as many answers, not %d", count(want, "question"), answers)
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// about names the question of an error where there are several.
func (q QuestionRequest) about(i int, err error) error {
	if len(q.Questions) == 1 {
		return err
	}
	return agent.Usagef("question %d: %w", i+1, err)
}

// Shown returns answers without secrets, to show or store them.
func (q QuestionRequest) Shown(answers [][]string) [][]string {
	shown := slices.Clone(answers)
	for i := range shown {
		if q.Questions[i].Secret && len(shown[i]) > 0 {
			shown[i] = []string{"(secret)"}
		}
	}
	return shown
}

// Message returns the questions with their answers as a text of one line each, without
// secrets.
func (q QuestionRequest) Message(answers [][]string) string {
	var lines []string
	for i, answer := range q.Shown(answers) {
		lines = append(lines, q.Questions[i].Text+" "+strings.Join(answer, ", "))
	}
	return strings.Join(lines, "\n")
}

// AnswerQuestions answers questions of the agent, one answer for each question in order.
// It returns [ErrTooLate] when the request is not open: it was answered, has timed out,
// or its turn has ended. An error of kind agent.ErrUsage reports that answers do not
// answer the questions; they stay open. The end of ctx is as in [Session.Answer], which
// declines questions, or ends their turn.
func (s *Session) AnswerQuestions(ctx context.Context, id string, answers [][]string) error {
	q, open := s.questionRequest(id)
	if !open {
		return ErrTooLate
	}
	if err := q.Check(answers); err != nil {
		return err
	}
	e, ok := s.engine.(engine.Questioner)
	if !ok {
		return ErrUnsupported
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := s.masked(deliver(ctx, func(ctx context.Context) error { return e.AnswerQuestions(ctx, id, answers) }))
	if errors.Is(err, agent.ErrUsage) {
		return err
	}
	if s.close(id); err != nil {
		return err
	}
	if s.options.Answered != nil {
		s.options.Answered(q, answers)
	}
	return nil
}

// Questions returns the open questions of the agent, oldest first.
func (s *Session) Questions() []QuestionRequest {
	list := []QuestionRequest{}
	for _, r := range s.open() {
		if r.questions != nil {
			list = append(list, r.questionRequest())
		}
	}
	return list
}

func (r *approvalRequest) questionRequest() QuestionRequest {
	return QuestionRequest{ID: r.approval.ID, Text: r.approval.Reason, Questions: r.questions}
}

// questionRequest returns the open questions with an ID.
func (s *Session) questionRequest(id string) (q QuestionRequest, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.approvals[id]
	if r == nil || r.questions == nil {
		return q, false
	}
	return r.questionRequest(), true
}

// consult passes questions on to Options.Ask.
func (s *Session) consult(r *approvalRequest) {
	q := r.questionRequest()
	answers := s.options.Ask(r.ctx, q)
	if answers == nil {
		return
	}
	if len(answers) == 0 || s.AnswerQuestions(context.Background(), q.ID, answers) != nil {
		_ = s.Answer(context.Background(), q.ID, Decline) // unless the request is over
	}
}
