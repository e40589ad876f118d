//go:build acceptance

package acceptance

import (
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// File tools never leave the workdir; only commands can.
func TestGeminiAccessHolds(t *testing.T) {
	t.Parallel()
	write := func(path string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"` + path + `","content":"x"}`}
	}
	proveAccess(t, newGemini, map[string]attempt{
		"file":                 {calls: try(write("REPO/sub/made-file")), makes: "sub/made-file", under: []string{"write", "full"}},
		"file above":           {calls: try(write("REPO/../made-file")), makes: "../made-file"},
		"command":              {calls: try(shell("touch sub/made-by-touch")), makes: "sub/made-by-touch", under: []string{"full"}},
		"command above":        {calls: try(shell("touch ../made-above")), makes: "../made-above", under: []string{"full"}},
		"allowed command":      {calls: try(shell("touch sub/made-by-touch")), makes: "sub/made-by-touch", args: []string{"--allow-command", "touch"}, under: []string{"read", "write", "full"}},
		"more than is allowed": {calls: try(shell("true && touch sub/made-by-touch")), makes: "sub/made-by-touch", args: []string{"--allow-command", "true"}, under: []string{"full"}},
	})
}

// A plan that the model makes and calls approved frees it from nothing.
func TestGeminiPlansGiveNoAccess(t *testing.T) {
	t.Parallel()
	enter := modeltest.ToolCall{Name: "enter_plan_mode", Arguments: `{"reason":"to plan"}`}
	plan := modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"made-plan.md","content":"# Plan\n\nDo all of it.\n"}`}
	leave := modeltest.ToolCall{Name: "exit_plan_mode", Arguments: `{"plan_filename":"made-plan.md"}`}
	edit := modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"made-file","content":"x"}`}
	proveAccess(t, newGemini, map[string]attempt{
		"command after a plan":         {calls: try(plan, leave, shell("touch ../made-above")), makes: "../made-above", under: []string{"full"}},
		"file after a plan":            {calls: try(plan, leave, edit), makes: "made-file", under: []string{"write", "full"}},
		"command after an entered one": {calls: try(enter, plan, leave, shell("touch ../made-above")), makes: "../made-above", words: []string{"read", "write"}},
	})
}
