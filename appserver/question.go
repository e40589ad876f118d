package appserver

import (
	"context"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// questions are those that the server asks the user at once.
type questions struct {
	Questions []struct {
		ID      string         `json:"id"`
		Header  string         `json:"header"`
		Text    string         `json:"question"`
		Options []agent.Option `json:"options"`
		Other   bool           `json:"isOther"`
		Secret  bool           `json:"isSecret"`
	} `json:"questions"`
}

// parseQuestions reads the questions of a request, none if it cannot be read.
func parseQuestions(params json.RawMessage) (list []agent.Question, ids []string) {
	var p questions
	if json.Unmarshal(params, &p) != nil {
		return nil, nil
	}
	for _, q := range p.Questions {
		ids = append(ids, q.ID)
		list = append(list, agent.Question{Header: q.Header, Text: q.Text, Options: q.Options, FreeText: q.Other || len(q.Options) == 0, Secret: q.Secret})
	}
	return list, ids
}

// An answered question is one entry of the answer of the user.
type answeredQuestion struct {
	Answers []string `json:"answers"`
}

// userInput answers questions, by their IDs. Without answers it declines them.
type userInput struct {
	Answers map[string]answeredQuestion `json:"answers"`
}

func declinedQuestions() userInput { return userInput{map[string]answeredQuestion{}} }

// AnswerQuestions answers a [QuestionRequest] with the answers to its questions, by their
// IDs. Without answers it declines the questions.
func (c *Client) AnswerQuestions(ctx context.Context, id json.RawMessage, answers map[string][]string) error {
	a := declinedQuestions()
	for question, answer := range answers {
		a.Answers[question] = answeredQuestion{answer}
	}
	return c.conn.Answer(ctx, id, a)
}

// request is a request of the server that is open.
type request struct {
	id        json.RawMessage // the server's
	questions []string        // the IDs of its questions; nil for an approval request
}

// question passes questions of the server on.
func (e *Engine) question(r Request) {
	event := agent.Event{Kind: agent.KindQuestion}
	var ids []string
	if event.Questions, ids = parseQuestions(r.Params); len(ids) == 0 {
		e.client.conn.Reply(r.ID, declinedQuestions())
		return
	}
	e.ask(r, event, ids)
}

// AnswerQuestions answers questions of the server.
func (e *Engine) AnswerQuestions(ctx context.Context, approvalID string, answers [][]string) error {
	r, open := e.approvals.Take(approvalID)
	if !open || r.questions == nil {
		return engine.ErrTooLate
	}
	given := map[string][]string{}
	for i, id := range r.questions[:min(len(r.questions), len(answers))] {
		given[id] = answers[i]
	}
	return e.client.AnswerQuestions(ctx, r.id, given)
}
