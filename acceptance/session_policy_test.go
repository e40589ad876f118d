//go:build acceptance

package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/policy"
)

// A policy accepts one command, declines another, and leaves the rest to the user, who
// declines them: one that no rule names, and one that hides another behind an accepted one.
func TestSessionPolicies(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) { testPolicy(t, cli.setup, cli.needsApproval) })
	t.Run("gemini", func(t *testing.T) {
		t.Parallel()
		testPolicy(t, newGemini, shell)
	})
}

func testPolicy(t *testing.T, setup setupFunc, needsApproval func(string) modeltest.ToolCall) {
	outside := newFiredDir(t)
	made := func(name string) string { return filepath.Join(outside, name) }
	commands := map[string]string{
		"accepted": "mkdir -p " + made("accepted"),
		"declined": "touch " + made("declined"),
		"asked":    "cp /dev/null " + made("asked"),
		"hidden":   "mkdir -p " + made("first") + " && cp /dev/null " + made("hidden"),
	}
	called := map[string]bool{}
	w := setup(t, func(r *modeltest.Request) modeltest.Reply {
		name := lastPrompt(r)
		if command := commands[name]; command != "" && !called[name] {
			called[name] = true
			return modeltest.Reply{needsApproval(command), turnUsage}
		}
		return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
	}, nil)
	var mu sync.Mutex
	var asked []string
	answers := map[string]string{}
	d := w.startSession(session.Options{
		Policy: &policy.Policy{Rules: []policy.Rule{
			{Command: []string{"mkdir", "-p"}, Decision: policy.Accept},
			{Command: []string{"touch"}, Decision: policy.Decline},
		}},
		Approve: func(_ context.Context, a session.Approval) session.Decision {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, a.Tool.Command)
			return session.Decline
		},
		Events: func(e *agent.Event) error {
			if e.Policy != nil {
				answers[e.Policy.Decision] += e.Tool.Command
			}
			return nil
		},
	}, nil)
	for _, name := range []string{"accepted", "declined", "asked", "hidden"} {
		d.sendWant(name, "done")
	}
	d.stop()
	for name, want := range map[string]bool{"accepted": true, "declined": false, "asked": false, "first": false, "hidden": false} {
		if _, err := os.Stat(made(name)); (err == nil) != want {
			t.Errorf("%s: it was run: %v, want %v", name, err == nil, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || !strings.Contains(asked[0], commands["asked"]) || !strings.Contains(asked[1], commands["hidden"]) {
		t.Errorf("the user is asked %q", asked)
	}
	if !strings.Contains(answers["accept"], commands["accepted"]) || !strings.Contains(answers["decline"], commands["declined"]) || len(answers) != 2 {
		t.Errorf("the policy answers %q", answers)
	}
}
