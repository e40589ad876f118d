//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/modeltest"
)

// How each failure of the model ends a run: its kind, what is said of it, and
// how often the model is asked at most.
func TestCodexFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply modeltest.Reply
		args  []string
		kind  string
		says  string
		asked int
	}{
		"401": {
			reply: modeltest.Reply{modeltest.HTTPError{Status: http.StatusUnauthorized, Message: "the key is no good"}},
			kind:  "authentication", says: "401 Unauthorized", asked: 4, // Codex alone asks six times
		},
		"400": {
			reply: modeltest.Reply{modeltest.HTTPError{Status: http.StatusBadRequest, Message: "what is this?"}},
			kind:  "agent", says: "what is this?", asked: 1,
		},
		"429": {
			reply: modeltest.Reply{modeltest.HTTPError{Status: http.StatusTooManyRequests, Message: "slow down"}},
			kind:  "quota", says: "429 Too Many Requests", asked: 1,
		},
		"500": {
			reply: modeltest.Reply{modeltest.HTTPError{Status: http.StatusInternalServerError, Message: "boom"}},
			kind:  "agent", says: "high demand", asked: 40,
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
		"cut in the middle": {
			reply: modeltest.Reply{modeltest.Text{"half an ans"}, modeltest.Cut{}},
			kind:  "agent", says: "stream disconnected", asked: 10,
		},
		"no headers": {
			reply: modeltest.Reply{modeltest.Silence{}},
			args:  []string{"--idle-timeout", "10s"},
			kind:  "idle_timeout", says: "no progress for 10s", asked: 1,
		},
		"silent stream": {
			reply: modeltest.Reply{modeltest.Text{}, modeltest.Silence{}},
			args:  []string{"--timeout", "10s"},
			kind:  "timeout", says: "within 10s", asked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, modeltest.Always(tt.reply), nil)
			r, o := w.run("hello", tt.args...)
			if o.code != 1 || r.Kind != tt.kind || !strings.Contains(r.Error, tt.says) {
				t.Errorf("kind %q, error %q; want %q, %q\n%v", r.Kind, r.Error, tt.kind, tt.says, o)
			}
			if n := len(w.model.ModelRequests()); n == 0 || n > tt.asked {
				t.Errorf("the model was asked %d times, want at most %d", n, tt.asked)
			}
			if strings.Contains(o.stdout+o.stderr, "sk-acceptance") {
				t.Error("the key is in the output")
			}
			if r.Text != "" {
				t.Errorf("a failed run has the answer %q", r.Text)
			}
		})
	}
}

// Retries are no progress: a server that always fails does not keep a run
// alive.
func TestCodexIdleTimeoutCountsRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Always(modeltest.Reply{modeltest.HTTPError{Status: http.StatusBadGateway}}), nil)
	r, o := w.run("hello", "--idle-timeout", "10s")
	if o.code != 1 || r.Kind != "idle_timeout" {
		t.Errorf("kind %q: %v", r.Kind, o)
	}
}

// A stream that drops once is tried again, and the answer counts once.
func TestCodexRecoversFromACut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"half"}, modeltest.Cut{}}, answer("the whole answer")), nil)
	r, o := w.run("hello")
	w.succeeds("the whole answer", r, o)
	w.asked(2)
}

func TestCodexEmptyAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Replies(nil), nil)
	r, o := w.run("hello")
	w.succeeds("", r, o)
}

// Ctrl-C ends the agent and the command it runs.
func TestCodexInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"touch running; sleep 300 & sleep 300","yield_time_ms":1000}`}},
		modeltest.Reply{modeltest.Silence{}},
	), map[string]string{".gitignore": "running\n"})
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	before := w.snapshot()
	cmd, stdout, stderr := w.start(ctx, "hello", append([]string{"run", "--agent", "codex", "--model", "gpt-5.5", "--format", "json", "--prompt", "-"}, w.fake()...)...)
	if _, err := w.model.Await(ctx, 2); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	interrupt(t, cmd)
	err := cmd.Wait()
	var r report
	if jsonErr := json.Unmarshal(stdout.Bytes(), &r); jsonErr != nil || r.Kind != "canceled" {
		t.Errorf("ended with %v, %v, kind %q\n%s\n%s", err, jsonErr, r.Kind, stdout, stderr)
	}
	if code := cmd.ProcessState.ExitCode(); code == 0 {
		t.Error("exit code 0")
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v to end", took)
	}
	w.checkTraces(before)
}

// A background process that a tool leaves open neither blocks the end of a run
// nor outlives it.
func TestCodexLeavesNoBackgroundProcess(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"write", "full"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, modeltest.Replies(
				modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"setsid sleep 300 & sleep 300","yield_time_ms":500}`}},
				answer("left running")), nil)
			r, o := w.run("hello", "--access", access)
			w.succeeds("left running", r, o)
			w.asked(2)
		})
	}
}
