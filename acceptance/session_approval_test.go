//go:build acceptance

package acceptance

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// An approvalCase is a tool call in each of two turns that writes a file, with the
// expected content of the file.
type approvalCase struct {
	tool  func(made string, turn int) modeltest.ToolCall
	after []string // by number of approvals
}

// approvalCases returns the calls for which the CLI requests approval. The file made is
// outside the workdir.
func (cli sessionCLI) approvalCases() map[string]approvalCase {
	list := map[string]approvalCase{
		"a command": {after: []string{"", "x", "xx"}, tool: func(made string, _ int) modeltest.ToolCall {
			return cli.needsApproval("python3 -c 'import sys; open(sys.argv[1], sys.argv[2]).write(sys.argv[3])' " + made + " a x")
		}},
		"a redirection": {after: []string{"", "x\n", "x\nx\n"}, tool: func(made string, _ int) modeltest.ToolCall {
			return cli.needsApproval("echo x >> " + made)
		}},
		"a file change": {after: []string{"", "1", "2"}, tool: func(made string, turn int) modeltest.ToolCall {
			return modeltest.ToolCall{Name: "Write", Arguments: fmt.Sprintf(`{"file_path":%q,"content":"%d"}`, made, turn)}
		}},
	}
	if cli.steers {
		list["a file change"] = approvalCase{after: []string{"", "1\n", "2\n"}, tool: func(made string, turn int) modeltest.ToolCall {
			change := "Add File: " + made + "\n+1"
			if _, err := os.Stat(made); turn == 2 && err == nil {
				change = "Update File: " + made + "\n@@\n-1\n+2"
			}
			return modeltest.ToolCall{Name: "apply_patch", Arguments: "*** Begin Patch\n*** " + change + "\n*** End Patch\n"}
		}}
	}
	return list
}

// Each decision on an approval request takes effect, in two turns with the same request,
// and is not stored on disk.
func TestSessionApprovals(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		for name, tt := range map[string]struct {
			decision session.Decision // empty: no decision
			asked    int              // number of requests for each case
			done     int
		}{
			"accept":             {session.Accept, 2, 2},
			"accept for session": {session.AcceptForSession, 1, 2},
			"decline":            {session.Decline, 2, 0},
			"cancel":             {session.Cancel, 2, 0},
			"no decision":        {"", 2, 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testPermission(t, cli, tt.decision, tt.asked, tt.done)
			})
		}
	})
}

func testPermission(t *testing.T, cli sessionCLI, decision session.Decision, asked, done int) {
	outside := newFiredDir(t)
	approvalCases := cli.approvalCases()
	made := func(name string) string { return filepath.Join(outside, strings.ReplaceAll(name, " ", "-")) }
	called := map[string]bool{} // by message
	w := cli.setup(t, func(r *modeltest.Request) modeltest.Reply {
		text := lastPrompt(r)
		name, turn, _ := strings.Cut(text, ": ")
		if approvalCase, ok := approvalCases[name]; ok && !called[text] {
			called[text] = true
			return modeltest.Reply{approvalCase.tool(made(name), len(turn))}
		}
		return answer("done")
	}, nil)
	var mu sync.Mutex
	requests := map[string]int{}
	options := session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
		mu.Lock()
		defer mu.Unlock()
		for name := range approvalCases {
			if a.ID != "" && a.Tool != nil && strings.Contains(string(a.Tool.Input), made(name)) {
				requests[name]++
				return decision
			}
		}
		t.Errorf("unexpected approval request %+v", a)
		return session.Decline
	}}
	if decision == "" {
		options.ApprovalTimeout = 300 * time.Millisecond
	}
	d := w.startSession(options, nil)
	for name, approvalCase := range approvalCases {
		for _, turn := range []string{"I", "II"} {
			r, err := d.send(name + ": " + turn)
			if decision == session.Cancel {
				wantErrorIs(t, err, agent.ErrCanceled)
			} else if err != nil || r.Text != "done" {
				t.Errorf("%s, %s: %q, %v", name, turn, r.Text, err)
			}
		}
		mu.Lock()
		if n := requests[name]; n != asked {
			t.Errorf("%s: %d approval requests, want %d", name, n, asked)
		}
		mu.Unlock()
		data, _ := os.ReadFile(made(name)) // a missing file is empty
		if string(data) != approvalCase.after[done] {
			t.Errorf("%s: the file holds %q, want %q", name, data, approvalCase.after[done])
		}
	}
	d.sendWant("hello", "done")
	if n := len(d.session.Approvals()); n != 0 {
		t.Errorf("%d requests are open", n)
	}
	d.stop()
	w.checkNoSettings()
}

// checkNoSettings fails the test if a CLI has stored a permission on disk.
func (w *fixture) checkNoSettings() {
	w.t.Helper()
	err := filepath.WalkDir(w.home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(entry.Name(), "settings") || strings.HasSuffix(entry.Name(), ".rules")) {
			w.t.Errorf("%s was written", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	for _, name := range []string{".claude", ".codex/config.toml", ".codex/rules"} {
		if _, err := os.Lstat(filepath.Join(w.repo, name)); err == nil {
			w.t.Errorf("%s was written", name)
		}
	}
	if data, err := os.ReadFile(filepath.Join(w.home, ".claude.json")); err == nil && strings.Contains(string(data), "made") {
		w.t.Errorf("the user's settings contain the permission:\n%s", clip(string(data)))
	}
}
