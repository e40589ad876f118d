package closeout_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/busdk/bus-integration-task/closeout"
)

// Whatever an agent reports and runs, the verdict is one bounded line, what goes into an
// event is bounded JSON, and nothing is done without a closeout.
func FuzzJudge(f *testing.F) {
	f.Add(whole, "go test ./...")
	f.Add("```json\n"+whole+"\n```", "bash -lc 'set -e; go test | tail' || exit 0")
	f.Add(`{"task_complete":true,"required_checks":["a && b"]}`, "if x; then y() { z; }; fi <<E\n$(a `b` \"${c:-d}\")\nE")
	f.Fuzz(func(t *testing.T, answer, command string) {
		report, err := closeout.Parse(answer)
		work := closeout.Work{
			Turn: closeout.TurnCompleted, Files: []string{"a.go"}, Commands: []closeout.Command{ran(command)},
		}
		verdict := closeout.Judge(&report, work)
		if strings.ContainsAny(verdict.Reason, "\n\r\x1b") || len(verdict.Reason) > 2<<10 || verdict.Reason == "" {
			t.Errorf("reason %q", verdict.Reason)
		}
		if err != nil && verdict.Outcome == closeout.Done {
			t.Errorf("done without a closeout: %v", err)
		}
		text, err := report.JSON(nil)
		if err != nil || !json.Valid(text) || len(text) > closeout.MaxJSON {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}
