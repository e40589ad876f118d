package closeout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/structured"
	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-integration-task/closeout"
)

const whole = `{"task_complete":true,"status":"done","summary":"fixed","changed_files":["a.go"],"plan_closed":false,` +
	`"no_matching_plan_item":true,"no_matching_plan_reason":"none","required_checks":[{"command":"make check","result":"pass","reason":""}],"remaining_blockers":[]}`

func TestParse(t *testing.T) {
	t.Parallel()
	full := closeout.Closeout{
		TaskComplete: true, Status: "done", Summary: "fixed", ChangedFiles: []string{"a.go"},
		NoMatchingPlanItem: true, NoMatchingPlanReason: "none",
		RequiredChecks: []closeout.Check{{Command: "make check", Result: "pass"}}, RemainingBlockers: closeout.Texts{},
	}
	for name, c := range map[string]struct {
		answer string
		want   closeout.Closeout
	}{
		"whole":            {whole, full},
		"fenced":           {"Done.\n```json\n" + whole + "\n```\n", full},
		"among words":      {"Done. " + whole + " Bye.", full},
		"member":           {`{"app_server_closeout":` + whole + `}`, full},
		"last of several":  {"First {\"a\":1} and\n{\"task_complete\":false}\nthen\n" + whole, full},
		"after an example": {"```json\n{\"x\":1}\n```\n```json\n" + whole + "\n```", full},
		"unknown fields":   {strings.Replace(whole, `{`, `{"mood":"good",`, 1), full},
		"status in capitals": {`{"task_complete":false,"status":" BLOCKED "}`,
			closeout.Closeout{Status: closeout.StatusBlocked}},
		"strings and objects": {
			`{"task_complete":true,"required_checks":["go test",{"name":"lint","status":"Passed"},{"command":"x","exit_code":1},{"check":"y","result":"skipped","reason":" slow "},{"z":1},{"command":"w","result":"flaky"}],` +
				`"remaining_blockers":["a",{"reason":"b"},{"kind":"c"},""," "]}`,
			closeout.Closeout{TaskComplete: true,
				RequiredChecks: []closeout.Check{
					{Command: "go test"}, {Command: "lint", Result: closeout.CheckPassed}, {Command: "x", Result: closeout.CheckFailed},
					{Command: "y", Result: closeout.CheckSkipped, Reason: "slow"}, {Command: `{"z":1}`}, {Command: "w", Result: closeout.CheckFailed},
				},
				RemainingBlockers: closeout.Texts{"a", "b", `{"kind":"c"}`}}},
		"one blocker":     {`{"task_complete":true,"remaining_blockers":"no access"}`, closeout.Closeout{TaskComplete: true, RemainingBlockers: closeout.Texts{"no access"}}},
		"null lists":      {`{"task_complete":true,"changed_files":null,"required_checks":null,"remaining_blockers":null}`, closeout.Closeout{TaskComplete: true, RemainingBlockers: closeout.Texts{}}},
		"empty lists":     {`{"task_complete":true,"changed_files":[]}`, closeout.Closeout{TaskComplete: true, ChangedFiles: []string{}}},
		"end of long one": {strings.Repeat("ä", 1<<20) + "\n" + whole, full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := closeout.Parse(c.answer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"empty":             "",
		"words":             "All done, every test passes.",
		"another object":    `{"ok":true}`,
		"list":              `[{"task_complete":true}]`,
		"cut off":           strings.TrimSuffix(whole, `[]}`),
		"wrong type":        `{"task_complete":"yes"}`,
		"wrong member":      `{"app_server_closeout":7}`,
		"number as blocker": `{"task_complete":true,"remaining_blockers":[7]}`,
		"name twice":        `{"task_complete":false,"task_complete":true}`,
		"too many files":    `{"task_complete":true,"changed_files":["a"` + strings.Repeat(`,"a"`, closeout.MaxChangedFiles) + `]}`,
		"too many blockers": `{"task_complete":true,"remaining_blockers":["a"` + strings.Repeat(`,"a"`, closeout.MaxItems) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := closeout.Parse(answer)
			if !errors.Is(err, closeout.ErrNone) || strings.ContainsAny(fmt.Sprint(err), "\n\x1b") {
				t.Errorf("got %+v, %v; want ErrNone in one line", c, err)
			}
		})
	}
}

// An explicit empty list survives the event that carries the closeout.
func TestCloseoutKeepsTheEmptyList(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{nil, {}} {
		text, err := json.Marshal(closeout.Closeout{TaskComplete: true, ChangedFiles: want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := closeout.Parse(string(text))
		if err != nil || (got.ChangedFiles == nil) != (want == nil) {
			t.Errorf("%s became %#v, %v", text, got.ChangedFiles, err)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schema, err := structured.Compile([]byte(closeout.Schema))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Check(whole); err != nil {
		t.Error(err)
	}
	for _, field := range []string{`"task_complete":true,`, `"plan_closed":false,`, `,"remaining_blockers":[]`} {
		if _, err := schema.Check(strings.Replace(whole, field, "", 1)); err == nil {
			t.Errorf("the schema does not require %s", field)
		}
	}
	if !strings.Contains(closeout.Instruction, closeout.Schema) {
		t.Error("the instruction lacks the schema")
	}
	// Runtimes with native structured output take the schema unchanged.
	for _, rt := range []registry.Runtime{codex.Runtime(), claude.Runtime()} {
		if !rt.Run.Options.Schema(registry.Invocation{Schema: json.RawMessage(closeout.Schema)}) {
			t.Errorf("%s does not take the schema", rt.ID)
		}
	}
}

func TestTriage(t *testing.T) {
	t.Parallel()
	complete := &closeout.Closeout{TaskComplete: true}
	for _, c := range []struct {
		outcome closeout.Outcome
		report  *closeout.Closeout
		want    closeout.Action
	}{
		{closeout.Blocked, nil, closeout.RecordBlocker},
		{closeout.Done, &closeout.Closeout{TaskComplete: true, Status: closeout.StatusBlocked}, closeout.RecordBlocker},
		{closeout.Failed, &closeout.Closeout{RemainingBlockers: closeout.Texts{"x"}}, closeout.RecordBlocker},
		{closeout.Failed, complete, closeout.ReopenCandidate},
		{closeout.Done, &closeout.Closeout{}, closeout.ReopenCandidate},
		{closeout.Done, &closeout.Closeout{TaskComplete: true, Status: closeout.StatusFailed}, closeout.ReopenCandidate},
		{closeout.Done, complete, closeout.ReviewPinCandidate},
		{closeout.Done, nil, closeout.InspectTerminal},
	} {
		if got := closeout.Triage(c.outcome, c.report); got != c.want {
			t.Errorf("Triage(%s, %+v) = %s, want %s", c.outcome, c.report, got, c.want)
		}
	}
}

func ExampleParse() {
	c, err := closeout.Parse("Both tests pass now.\n\n" + `{"task_complete": true, "changed_files": ["a.go"], "required_checks": ["go test ./..."]}`)
	fmt.Println(c.TaskComplete, c.ChangedFiles, c.RequiredChecks[0].Command, err)
	// Output: true [a.go] go test ./... <nil>
}
