package claude

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestQuestions(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"metadata":{"source":"x"},"questions":[` +
		`{"question":"Which way?","header":"Way","multiSelect":false,"options":[{"label":"left","description":"shorter","preview":"<b>"},{"label":"right"}]},` +
		`{"question":"What else?","header":"More","multiSelect":true,"options":[{"label":"fast"},{"label":"loud"}]}]}`)
	want := []agent.Question{
		{Header: "Way", Text: "Which way?", Options: []agent.Option{{Label: "left", Description: "shorter"}, {Label: "right"}}, FreeText: true},
		{Header: "More", Text: "What else?", Options: []agent.Option{{Label: "fast"}, {Label: "loud"}}, Multiple: true, FreeText: true},
	}
	if diff := cmp.Diff(want, questions("AskUserQuestion", input)); diff != "" {
		t.Error(diff)
	}
	for _, call := range [][2]string{{"Bash", string(input)}, {"AskUserQuestion", `{}`}, {"AskUserQuestion", `{"questions":"x"}`}, {"AskUserQuestion", `[`}} {
		if got := questions(call[0], json.RawMessage(call[1])); got != nil {
			t.Errorf("%s: %+v", call, got)
		}
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(answered(input, [][]string{{"left"}, {"fast", "loud"}}), &got); err != nil {
		t.Fatal(err)
	}
	if string(got["answers"]) != `{"What else?":"fast, loud","Which way?":"left"}` || string(got["metadata"]) != `{"source":"x"}` || got["questions"] == nil {
		t.Errorf("%s", got)
	}
}
