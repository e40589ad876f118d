package mcpserver

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func TestSessionTools(t *testing.T) {
	t.Parallel()
	client := connect(t, settings(t), nil)
	started, text, failed := call[statusOutput](t, client, "start_session", map[string]any{"runtime": "claude", "prompt": "hello"})
	if failed || started.Text != "Answer 1." || started.State != session.StateReady || !strings.Contains(text, "Answer 1.\n\n[session_id "+started.Status.SessionID) {
		t.Fatalf("%+v, %q", started, text)
	}
	id := started.Status.SessionID
	sent, _, failed := call[statusOutput](t, client, "send_message", map[string]any{"session_id": id, "message": "more"})
	if failed || sent.Text != "Answer 2." || sent.Turn != 2 {
		t.Errorf("%+v", sent)
	}
	read, text, failed := call[readOutput](t, client, "read_session", map[string]any{"session_id": id, "from": 2})
	if failed || len(read.Notes) != 1 || read.Notes[0].Text != "Answer 2." || read.Next != 3 || !strings.Contains(text, "2. text: Answer 2.") {
		t.Errorf("%+v, %q", read, text)
	}
	stopped, _, failed := call[statusOutput](t, client, "stop_session", map[string]any{"session_id": id})
	if failed || stopped.State != session.StateStopped {
		t.Errorf("%+v", stopped)
	}
	for tool, more := range map[string]map[string]any{
		"send_message": {"message": "x"}, "answer_request": {"request_id": "1", "decision": "accept"}, "read_session": {}, "stop_session": {},
	} {
		more["session_id"] = "other"
		if out, text, failed := call[statusOutput](t, client, tool, more); !failed || out.Kind != "usage" || !strings.Contains(text, "other") {
			t.Errorf("%s of another session: %+v, %q", tool, out.failure, text)
		}
	}
}

// An approval request is decided by the user, if the client can ask, or else by the
// caller, if the server lets it.
func TestApprovalsAreSurfaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		access  agent.Access
		approve bool
		user    *mcp.ElicitResult // nil if the client cannot ask
		waits   bool
		answer  string
	}{
		"no answer":         {agent.AccessWrite, false, nil, false, "Denied."},
		"the user approves": {agent.AccessWrite, false, &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, false, "Allowed."},
		"the user refuses":  {agent.AccessWrite, true, &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": false}}, false, "Denied."},
		"the user declines": {agent.AccessWrite, true, &mcp.ElicitResult{Action: "decline"}, false, "Denied."},
		"the caller may":    {agent.AccessWrite, true, nil, true, "Allowed."},
		"only reading":      {agent.AccessRead, true, &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, false, "Denied."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t)
			s.Access, s.Approve = c.access, c.approve
			o := &mcp.ClientOptions{}
			var asked atomic.Int32
			if c.user != nil {
				o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					if !strings.Contains(r.Params.Message, "make") {
						t.Errorf("the user sees %q", r.Params.Message)
					}
					return c.user, nil
				}
			}
			client := connect(t, s, o)
			status, text, _ := call[statusOutput](t, client, "start_session", map[string]any{"runtime": "claude", "prompt": "approve"})
			if c.waits {
				if status.State != session.StateWaiting || len(status.Requests) != 1 || !strings.Contains(text, "asks for approval: Bash") {
					t.Fatalf("%+v, %q", status, text)
				}
				status, _, _ = call[statusOutput](t, client, "answer_request", map[string]any{
					"session_id": status.Status.SessionID, "request_id": status.Requests[0].ID, "decision": "accept",
				})
			}
			if status.Text != c.answer {
				t.Errorf("%+v", status)
			}
			if want := c.user != nil && c.access != agent.AccessRead; (asked.Load() == 1) != want {
				t.Errorf("the user was asked %d times", asked.Load())
			}
		})
	}
}

func TestRecordTools(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.RunsRoot = t.TempDir()
	s.Record = &control.RecordSettings{Root: s.RunsRoot, Required: true}
	client := connect(t, s, nil)
	if list, text, failed := call[listRunsOutput](t, client, "list_runs", nil); failed || len(list.Runs) != 0 || text != "No runs are recorded." {
		t.Errorf("%+v, %q", list, text)
	}
	run, _, failed := call[runOutput](t, client, "run_agent", map[string]any{"prompt": "hello", "runtime": "codex"})
	if failed || run.RunID == "" {
		t.Fatalf("%+v", run)
	}
	list, _, failed := call[listRunsOutput](t, client, "list_runs", map[string]any{"status": "completed"})
	if failed || len(list.Runs) != 1 || list.Runs[0].RunID != run.RunID {
		t.Errorf("%+v", list)
	}
	for part, want := range map[string]string{"answer": "You said: hello.", "prompt": "hello"} {
		read, text, failed := call[readRunOutput](t, client, "read_run", map[string]any{"run_id": run.RunID, "part": part})
		if failed || read.Text != want || !strings.HasPrefix(text, want+"\n\n["+run.RunID) {
			t.Errorf("%s: %+v, %q", part, read, text)
		}
	}
}
