package engine_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// What is open has a limit in bytes, which the requests that are over do not count for.
func TestApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	large := &agent.Event{Tool: &agent.Tool{Input: []byte(strings.Repeat("x", 16<<20))}}
	small := &agent.Event{Text: "x"}
	var a engine.Approvals[string]
	open := func(agentID string, e *agent.Event, want string) (id string) {
		t.Helper()
		id, denied, _ := a.Open(agentID, e, agentID)
		if denied != want {
			t.Errorf("%s: %q, want %q", agentID, denied, want)
		}
		return id
	}
	const full = "declined: it and the approval requests that are open have more than 32 MiB"
	first := open("1", large, "")
	open("2", large, "")
	open("3", small, full)
	if kept, ok := a.Take(first); kept != "1" || !ok {
		t.Errorf("%q, %t", kept, ok)
	}
	open("4", large, "")
	open("5", small, full)
	if _, ok := a.Withdraw("2"); !ok {
		t.Error("it is not open")
	}
	open("6", large, "")
	open("6", large, "declined: the agent sent another approval request with the same ID")
	open("7", large, "")
	if ids, _ := a.Clear(); len(ids) != 2 {
		t.Errorf("open: %q", ids)
	}
	for i := range engine.MaxApprovals {
		open(strings.Repeat("i", i+1), small, "")
	}
	open("8", small, "declined: 100 approval requests are open already")
}

func TestPostedLinesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		lines := engine.NewLineWriter(w)
		line := make([]byte, 16<<20)
		for i := range 6 {
			if err := lines.Post(line); (err == nil) != (i < 4) {
				t.Errorf("line %d is posted: %v", i, err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		synctest.Wait()
		if err := lines.Post(line); err != nil {
			t.Error(err)
		}
		if err := lines.Close(); err != nil {
			t.Error(err)
		}
	})
}
