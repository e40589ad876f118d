//go:build acceptance

package acceptance

import (
	"slices"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// What bus-agent verify does not test: edits with full access, commands with write access
// or outside the workdir, and files and commands of another kind.
func TestClaudeAccessHolds(t *testing.T) {
	t.Parallel()
	write := func(path string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "Write", Arguments: `{"file_path":"` + path + `","content":"x"}`}
	}
	testAccess(t, newClaude, map[string]accessCase{
		"file":            {calls: callsOf(write("REPO/sub/made-file")), makes: "sub/made-file", words: []string{"full"}, under: []string{"full"}},
		"file above":      {calls: callsOf(write("REPO/../made-file")), makes: "../made-file", words: []string{"full"}, under: []string{"full"}},
		"file of git":     {calls: callsOf(write("REPO/.git/made")), makes: ".git/made", under: []string{"full"}},
		"settings":        {calls: callsOf(write("REPO/.claude/made-settings.json")), makes: ".claude/made-settings.json", under: []string{"full"}},
		"command":         {calls: callsOf(bash("git rev-parse HEAD > /dev/null; env > sub/made-by-env")), makes: "sub/made-by-env", words: []string{"write"}},
		"command above":   {calls: callsOf(bash("touch ../made-above")), makes: "../made-above", words: []string{"full"}, under: []string{"full"}},
		"allowed command": {calls: callsOf(bash("make -v; make -C sub -f keep --eval 'x:;touch made-by-make' x")), makes: "sub/made-by-make", args: []string{"--allow-command", "make *"}, under: []string{"read", "write", "full"}},
	})
}

// Other tools of Claude Code leave nothing in the repository.
func TestClaudeAccessHoldsForOtherTools(t *testing.T) {
	t.Parallel()
	limited := []string{"read", "write"}
	deferred := modeltest.ToolCall{Name: "ToolSearch", Arguments: `{"query":"select:EnterWorktree,CronCreate,Monitor"}`}
	tool := func(name, arguments string) []modeltest.ToolCall {
		return callsOf(deferred, modeltest.ToolCall{Name: name, Arguments: arguments})
	}
	testAccess(t, newClaude, map[string]accessCase{
		"worktree":           {calls: tool("EnterWorktree", `{"name":"made"}`), makes: ".claude/worktrees/made", words: limited},
		"durable task":       {calls: tool("CronCreate", `{"cron":"* * * * *","prompt":"x","recurring":false,"durable":true}`), makes: ".claude/scheduled_tasks.json", words: limited},
		"background command": {calls: append(tool("Monitor", `{"command":"touch ../made-above","description":"d","timeout_ms":1000,"persistent":false}`), bash("cat sub/keep")), makes: "../made-above", words: limited},
	})
}

func TestClaudeWritesToAddedDirs(t *testing.T) {
	t.Parallel()
	extra := newFiredDir(t)
	w := newClaude(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "Write", Arguments: `{"file_path":"` + extra + `/made","content":"x"}`}},
		answer("done")), nil)
	r, o := w.run("make a file", "--add-dir", extra)
	w.wantAnswer("done", r, o)
	if got := firedNames(t, extra); !slices.Equal(got, []string{"made"}) {
		t.Errorf("created %q; the tool results are %q", got, w.wantRequests(2)[1].ToolResults())
	}
}
