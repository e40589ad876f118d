package session

import (
	"context"
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func answerCommand(prog *cmdline.Program) *urfave.Command {
	var request string
	return &urfave.Command{
		Name:      "answer",
		Usage:     "answer a question of the agent",
		ArgsUsage: "ID ANSWER...",
		Description: `Answers what the agent asks the user. "session show" and "session watch" print the
questions with their options. Give an ANSWER for each question, in order: the number of an
option, its label, several of these separated by commas if the question takes several, or
a text of your own if it takes one. An empty ANSWER skips a question that is optional.

"session approve ID decline" refuses to answer; "cancel" also ends the turn.`,
		Flags: []urfave.Flag{cmdline.String("request", "answer the questions with `ID`, if several requests are open", &request)},
		UsageText: cmdline.UsageText(`# choose the second option
bus-agent session answer review 2`,
			"the answer was delivered", "the question is no longer open, or the session has ended"),
		BashComplete: completes(prog, control.Entry.Served),
		Action: action(prog, cmdline.Slow, func(ctx context.Context, t target) error {
			status, err := t.Show(ctx, t.entry)
			if err != nil {
				return err
			}
			asked, err := questionsOf(status.Questions, request)
			if err != nil {
				return err
			}
			answers, err := asked.Parse(t.args)
			if err != nil {
				return err
			}
			return t.AnswerQuestions(ctx, t.entry, asked.ID, answers)
		}),
	}
}

// questionsOf returns the questions with an ID, or the only ones.
func questionsOf(open []session.QuestionRequest, id string) (session.QuestionRequest, error) {
	if id == "" && len(open) == 1 {
		return open[0], nil
	}
	for _, q := range open {
		if q.ID == id {
			return q, nil
		}
	}
	switch {
	case id != "":
		return session.QuestionRequest{}, &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("request %s is not an open question; \"session show\" lists them", cmdline.Printable(id))}
	case len(open) > 1:
		return session.QuestionRequest{}, cmdline.Misusef("%d requests with questions are open; choose one with --request", len(open))
	}
	return session.QuestionRequest{}, &agent.Error{Kind: agent.ErrAgent, Err: errors.New("no question is open")}
}
