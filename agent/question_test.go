package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

// What a user types becomes labels and texts, or is refused in plain words.
func TestQuestionParse(t *testing.T) {
	t.Parallel()
	options := []agent.Option{{Label: "left"}, {Label: "Right, now"}, {Label: "1"}}
	one := agent.Question{Options: options}
	several := agent.Question{Options: options, Multiple: true}
	free := agent.Question{Options: options, FreeText: true}
	text := agent.Question{}
	optional := agent.Question{Options: options, Optional: true}
	secret := agent.Question{Options: options, Secret: true}
	for _, test := range []struct {
		question agent.Question
		text     string
		want     []string
		problem  string
	}{
		{one, "left", []string{"left"}, ""},
		{one, " LEFT ", []string{"left"}, ""},
		{one, "2", []string{"Right, now"}, ""},
		{one, "right, now", []string{"Right, now"}, ""},
		{one, "1", []string{"1"}, ""}, // the label before the number
		{one, "4", nil, `"4" is not one of the options; use a number from 1 to 3, or a label`},
		{one, "left,2", nil, `"left,2" is not one of the options; use a number from 1 to 3, or a label`},
		{one, "", nil, "the question needs an answer"},
		{several, "2, left,2", []string{"Right, now", "left"}, ""},
		{several, "left,up", nil, `"left,up" is not one of the options; use a number from 1 to 3, or a label`},
		{free, "2", []string{"Right, now"}, ""},
		{free, "up, then left", []string{"up, then left"}, ""},
		{free, "4", []string{"4"}, ""},
		{text, " up ", []string{"up"}, ""},
		{text, " ", nil, "the question needs an answer"},
		{optional, "", nil, ""},
		{secret, "hunter2", nil, "the answer is not one of the options; use a number from 1 to 3, or a label"},
	} {
		got, err := test.question.Parse(test.text)
		if !slices.Equal(got, test.want) && test.problem == "" || (err == nil) != (test.problem == "") {
			t.Errorf("%q: %q, %v; want %q, %s", test.text, got, err, test.want, test.problem)
		}
		if err != nil && (err.Error() != test.problem || !errors.Is(err, agent.ErrUsage)) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
}

func TestQuestionCheck(t *testing.T) {
	t.Parallel()
	options := []agent.Option{{Label: "left"}, {Label: "right"}}
	for _, test := range []struct {
		question agent.Question
		answer   []string
		problem  string
	}{
		{agent.Question{Options: options}, []string{"left"}, ""},
		{agent.Question{Options: options}, []string{"Left"}, `"Left" is not one of the options`},
		{agent.Question{Options: options}, []string{"left", "right"}, "the question takes one answer, not 2"},
		{agent.Question{Options: options, Multiple: true}, []string{"left", "right"}, ""},
		{agent.Question{Options: options, FreeText: true}, []string{"up"}, ""},
		{agent.Question{Options: options, FreeText: true}, []string{" "}, "an answer is empty"},
		{agent.Question{}, nil, "the question needs an answer"},
		{agent.Question{Optional: true}, nil, ""},
	} {
		problem := ""
		if err := test.question.Check(test.answer); err != nil {
			problem = err.Error()
		}
		if problem != test.problem {
			t.Errorf("%q: %q, want %q", test.answer, problem, test.problem)
		}
	}
}

// A clone shares no memory with the event.
func TestCloneOfQuestions(t *testing.T) {
	t.Parallel()
	e := agent.Event{Questions: []agent.Question{{Text: "Which way?", Options: []agent.Option{{Label: "left"}}}}}
	c := e.Clone()
	e.Questions[0].Text, e.Questions[0].Options[0].Label = "x", "x"
	if c.Questions[0].Text != "Which way?" || c.Questions[0].Options[0].Label != "left" {
		t.Errorf("the clone is now %+v", c.Questions)
	}
}

// The user chooses by number, by name or, where the agent takes it, in other words.
func ExampleQuestion_Parse() {
	q := agent.Question{
		Text:    "Which database?",
		Options: []agent.Option{{Label: "SQLite", Description: "one file"}, {Label: "PostgreSQL"}},
	}
	for _, text := range []string{"2", "sqlite", "a text file"} {
		answer, err := q.Parse(text)
		fmt.Println(answer, err)
	}
	// Output:
	// [PostgreSQL] <nil>
	// [SQLite] <nil>
	// [] "a text file" is not one of the options; use a number from 1 to 2, or a label
}
