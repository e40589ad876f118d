package claude

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// questionTool asks the user up to four questions.
const questionTool = "AskUserQuestion"

// questions returns the questions that a tool call asks the user, nil for another tool.
func questions(tool string, input json.RawMessage) []agent.Question {
	if tool != questionTool {
		return nil
	}
	var asked struct {
		Questions []struct {
			Text     string `json:"question"`
			Header   string `json:"header"`
			Multiple bool   `json:"multiSelect"`
			Options  []agent.Option
		} `json:"questions"`
	}
	if json.Unmarshal(input, &asked) != nil {
		return nil
	}
	var list []agent.Question
	for _, q := range asked.Questions {
		list = append(list, agent.Question{Header: q.Header, Text: q.Text, Options: q.Options, Multiple: q.Multiple, FreeText: true})
	}
	return list
}

// answered returns the input of a call of questionTool with the answers by question.
func answered(input json.RawMessage, answers [][]string) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(input, &members) // questions has read it
	given := map[string]string{}
	for i, q := range questions(questionTool, input) {
		if i < len(answers) {
			given[q.Text] = strings.Join(answers[i], ", ")
		}
	}
	members["answers"] = encode(given)
	return encode(members)
}
