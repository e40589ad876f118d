//go:build acceptance

package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// write returns a call of the CLI's tool for writing files.
func (cli sessionCLI) write(path string) modeltest.ToolCall {
	if cli.steers {
		return modeltest.ToolCall{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch\n"}
	}
	return modeltest.ToolCall{Name: "Write", Arguments: fmt.Sprintf(`{"file_path":%q,"content":"x"}`, path)}
}

// Effort, verbosity and added folders apply to sessions, without approval requests.
func TestSessionHonoursItsSettings(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		extra := newFiredDir(t)
		made := filepath.Join(extra, "made")
		w := cli.setup(t, modeltest.Replies(modeltest.Reply{cli.write(made)}, answer("done")), nil)
		d := w.startSession(session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
			t.Errorf("unexpected approval request %+v", a)
			return session.Decline
		}}, func(r *agent.Request) {
			r.AddDirs, r.ReasoningEffort = []string{extra}, agent.EffortHigh
			if cli.steers {
				r.Verbosity = "low"
			}
		})
		d.sendWant("make a file", "done")
		if _, err := os.Stat(made); err != nil {
			t.Error(err)
		}
		request := w.wantRequests(2)[1]
		if request.Effort() != "high" || cli.steers && request.Verbosity() != "low" {
			t.Errorf("effort %q, verbosity %q", request.Effort(), request.Verbosity())
		}
		d.stop()
	})
}

// With read access, Codex requests approval to write, and Claude Code does not write.
func TestReadSessionWritesOnlyAfterApproval(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		for _, decision := range []session.Decision{session.Accept, session.Decline} {
			t.Run(string(decision), func(t *testing.T) {
				t.Parallel()
				var made string
				w := cli.setup(t, func(r *modeltest.Request) modeltest.Reply {
					if len(r.ToolResults()) == 0 {
						return modeltest.Reply{cli.write(made)}
					}
					return answer("done")
				}, map[string]string{".gitignore": "made\n"})
				made = filepath.Join(w.repo, "made")
				var asked atomic.Int32
				d := w.startSession(session.Options{Approve: func(context.Context, session.Approval) session.Decision {
					asked.Add(1)
					return decision
				}}, func(r *agent.Request) { r.Access = agent.AccessRead })
				d.sendWant("make a file", "done")
				_, err := os.Stat(made)
				if done := err == nil; done != (cli.steers && decision == session.Accept) {
					t.Errorf("the file was made: %v", done)
				}
				if (asked.Load() > 0) != cli.steers {
					t.Errorf("%d approval requests", asked.Load())
				}
				d.stop()
			})
		}
	})
}
