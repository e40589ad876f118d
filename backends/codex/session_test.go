package codex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
)

// newHome makes a private home.
func newHome(t *testing.T) *instructions.Home {
	t.Helper()
	w, err := instructions.Open(instructions.Chain{Workdir: t.TempDir()}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	home, _, err := w.RunHome(homeParent, "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Remove() })
	return home
}

func TestCompleteReadsTheSessionFile(t *testing.T) {
	t.Parallel()
	const (
		context = `{"type":"turn_context","payload":{"model":"MODEL"}}`
		record  = `{"type":"token_usage_record","payload":{"turn_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":3,"reasoning_output_tokens":2},"thread_token_usage":{"input_tokens":99}}}`
	)
	session := strings.Join([]string{
		strings.Replace(context, "MODEL", "old", 1), strings.Replace(record, "10", "77", 1),
		"no JSON", strings.Repeat("x", sessionTail),
		strings.Replace(context, "MODEL", "gpt-6.1-sol", 1), record, "",
	}, "\n")
	name := "sessions/2026/11/21/rollout-2026-11-21T02-38-28-" + thread + ".jsonl"
	home := newHome(t)
	newProject(t, nil).write(filepath.Join(home.Path(), name), session)

	for label, c := range map[string]struct {
		home *instructions.Home
		in   agent.Result
		want agent.Result
	}{
		"a session that began before": {home,
			agent.Result{SessionID: thread, Usage: &agent.Usage{Input: 99, Cumulative: true}},
			agent.Result{SessionID: thread, Model: "gpt-6.1-sol", Usage: &agent.Usage{Input: 10, Cached: 4, Output: 3, Reasoning: 2}}},
		"a fresh session": {home,
			agent.Result{SessionID: thread, Usage: &agent.Usage{Input: 12}},
			agent.Result{SessionID: thread, Model: "gpt-6.1-sol", Usage: &agent.Usage{Input: 12}}},
		"no session":      {home, agent.Result{}, agent.Result{}},
		"another session": {home, agent.Result{SessionID: "x"}, agent.Result{SessionID: "x"}},
		"no file":         {newHome(t), agent.Result{SessionID: thread}, agent.Result{SessionID: thread}},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			got := c.in
			complete(c.home, &got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(home.Path(), name)); err != nil {
		t.Error(err)
	}
}
