//go:build acceptance

package acceptance

import (
	"net/http"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// Failures of which bus-agent verify has none, and the number of requests after a refusal.
func TestCodexFailures(t *testing.T) {
	t.Parallel()
	testFailures(t, newCodex, map[string]failure{
		"401": {
			reply: modeltest.Reply{modeltest.HTTPError{Status: http.StatusUnauthorized, Message: "the key is refused"}},
			kind:  "authentication", says: "401 Unauthorized", asked: 4, // Codex sends six without bus-agent
		},
		"quota used up": {
			reply: modeltest.Reply{modeltest.Fail{Code: "insufficient_quota", Message: "pay first"}},
			kind:  "quota", says: "Quota exceeded", asked: 1,
		},
		"rate limit in the stream": {
			reply: modeltest.Reply{modeltest.Fail{Code: "rate_limit_exceeded", Message: "slow down"}},
			kind:  "quota", says: "slow down", asked: 10,
		},
		"context too long": {
			reply: modeltest.Reply{modeltest.Fail{Code: "context_length_exceeded", Message: "too long"}},
			kind:  "agent", says: "context window", asked: 1,
		},
	})
}

// Retries do not count as progress.
func TestCodexIdleTimeoutCountsRetries(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Always(modeltest.Reply{modeltest.HTTPError{Status: http.StatusBadGateway}}), nil)
	r, o := w.run("hello", "--idle-timeout", "10s")
	if o.code != 1 || r.Kind != "idle_timeout" {
		t.Errorf("kind %q: %v", r.Kind, o)
	}
}

func TestCodexRecoversFromACut(t *testing.T) {
	t.Parallel()
	testRecovery(t, newCodex)
}

// A background process of a tool neither blocks the end of a run nor outlives it.
func TestCodexLeavesNoBackgroundProcess(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"write", "full"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			w := newCodex(t, modeltest.Replies(
				modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"setsid sleep 300 & sleep 300","yield_time_ms":500}`}},
				answer("left running")), nil)
			r, o := w.run("hello", "--access", access)
			w.wantAnswer("left running", r, o)
			w.wantRequests(2)
		})
	}
}
