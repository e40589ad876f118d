//go:build acceptance

package acceptance

import (
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// File tools are limited to the workdir; commands are not. bus-agent verify tests edits with
// less than full access, and commands in the workdir with read and full access.
func TestGeminiAccessHolds(t *testing.T) {
	t.Parallel()
	write := func(path string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"` + path + `","content":"x"}`}
	}
	testAccess(t, newGemini, map[string]accessCase{
		"file":                 {calls: callsOf(write("REPO/sub/made-file")), makes: "sub/made-file", words: []string{"full"}, under: []string{"full"}},
		"file above":           {calls: callsOf(write("REPO/../made-file")), makes: "../made-file", words: []string{"full"}},
		"command":              {calls: callsOf(shell("touch sub/made-by-touch")), makes: "sub/made-by-touch", words: []string{"write"}},
		"command above":        {calls: callsOf(shell("touch ../made-above")), makes: "../made-above", words: []string{"full"}, under: []string{"full"}},
		"allowed command":      {calls: callsOf(shell("touch sub/made-by-touch")), makes: "sub/made-by-touch", args: []string{"--allow-command", "touch"}, under: []string{"read", "write", "full"}},
		"more than is allowed": {calls: callsOf(shell("true && touch sub/made-by-touch")), makes: "sub/made-by-touch", args: []string{"--allow-command", "true"}, under: []string{"full"}},
	})
}

// A plan that the model itself approves grants no access.
func TestGeminiPlansGiveNoAccess(t *testing.T) {
	t.Parallel()
	enter := modeltest.ToolCall{Name: "enter_plan_mode", Arguments: `{"reason":"to plan"}`}
	plan := modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"made-plan.md","content":"# Plan\n\nDo all of it.\n"}`}
	leave := modeltest.ToolCall{Name: "exit_plan_mode", Arguments: `{"plan_filename":"made-plan.md"}`}
	edit := modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"made-file","content":"x"}`}
	testAccess(t, newGemini, map[string]accessCase{
		"command after a plan":         {calls: callsOf(plan, leave, shell("touch ../made-above")), makes: "../made-above", under: []string{"full"}},
		"file after a plan":            {calls: callsOf(plan, leave, edit), makes: "made-file", under: []string{"write", "full"}},
		"command after an entered one": {calls: callsOf(enter, plan, leave, shell("touch ../made-above")), makes: "../made-above", words: []string{"read", "write"}},
	})
}
