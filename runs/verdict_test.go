package runs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/structured"
)

// A record has the verdict of its answer: a run whose answer does not follow the schema
// has failed, in the record and in the messages of the task.
func TestRecordOfAnAnswerThatDoesNotFollowTheSchema(t *testing.T) {
	t.Parallel()
	schema, err := structured.Compile([]byte(`{"type":"object","required":["city"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const right, wrong = `text:{"city":"Turku"}`, `text:{"town":"Turku"}`
	for name, c := range map[string]struct {
		answers string
		want    []runs.Status
		output  string // of the last run
	}{
		"right":      {right + "|", []runs.Status{runs.StatusCompleted}, `{"city":"Turku"}`},
		"repaired":   {wrong + "|" + right, []runs.Status{runs.StatusFailed, runs.StatusCompleted}, `{"city":"Turku"}`},
		"not at all": {wrong + "|" + wrong, []runs.Status{runs.StatusFailed, runs.StatusFailed}, `{"town":"Turku"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &runs.Records{})
			req := b.request("once "+c.answers, "say ok:")
			req.Labels = agent.Labels{Project: "p", Task: "task-001"}
			e := structured.Enforcer{Next: &b.Runner, Schema: schema}
			_, runErr := e.Run(t.Context(), req, agent.Output{})
			last := c.want[len(c.want)-1]
			if (runErr == nil) != (last == runs.StatusCompleted) {
				t.Error(runErr)
			}
			list, problems, err := (&runs.Records{Root: b.root}).List(t.Context(), runs.Filter{})
			if err != nil || len(problems) > 0 || len(list) != len(c.want) {
				t.Fatalf("%d records, %v, %v", len(list), problems, err)
			}
			var ends []string
			for i, want := range c.want {
				run := list[len(list)-1-i]
				end := runs.MessageStop
				if want == runs.StatusFailed {
					end = runs.MessageCrash
					reason := `the answer does not follow the schema`
					if run.ErrorKind != "agent" || !strings.Contains(run.Error, reason) || !strings.Contains(run.ErrorSummary, reason) || run.ExitCode != 0 {
						t.Errorf("run %d failed with %q, %q, %q", i+1, run.ErrorKind, run.Error, run.ErrorSummary)
					}
				}
				ends = append(ends, end)
				if run.Status != want {
					t.Errorf("run %d is %s, want %s", i+1, run.Status, want)
				}
			}
			if len(list) == 2 && list[0].PreviousRunID != list[1].RunID {
				t.Error("the runs are not linked")
			}
			if got := read(t, list[0].Dir, "output.md"); got != c.output {
				t.Errorf("output.md is %q, want %q", got, c.output)
			}
			messages, err := runs.ReadMessages(filepath.Join(b.root, "p", "task-001", "TASK-MESSAGE-BUS.md"))
			if err != nil || len(messages) != 2*len(ends) {
				t.Fatalf("%d messages, %v", len(messages), err)
			}
			for i, want := range ends {
				if got := messages[2*i+1].Type; got != want {
					t.Errorf("message %d is %s, want %s", 2*i+2, got, want)
				}
			}
		})
	}
}
