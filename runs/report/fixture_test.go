package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

var madeAt = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// exampleRuns are n runs of two weeks as they might be, newest first.
func exampleRuns(n int) []runs.Info {
	random := rand.New(rand.NewPCG(3, 14))
	kinds := []struct{ runtime, model string }{
		{"codex", "gpt-5.5"}, {"claude", "claude-opus-4.5"}, {"claude", "claude-haiku-4.5"},
		{"gemini", "gemini-2.5-pro"}, {"codex:local", "qwen3-coder:30b"}, {"cursor", ""},
	}
	tasks := []string{"fix-login-redirect", "sort-imports", "review-payment-module", "write-migration", "update-docs", "find-flaky-test"}
	var list []runs.Info
	at := madeAt.Add(-4 * time.Minute)
	for i := range n {
		kind := kinds[min(random.IntN(8), 5)]
		took := time.Duration(random.ExpFloat64()*240+3) * time.Second
		task := tasks[random.IntN(len(tasks))]
		run := runs.Info{
			Version: 1, RunID: fmt.Sprintf("%s-%d-1", at.Format("20060102-1504050000"), 20000+i),
			ProjectID: []string{"shop", "shop", "ledger"}[random.IntN(3)],
			TaskID:    fmt.Sprintf("task-%s-%s", at.Format("20060102-150405"), task),
			Agent:     kind.runtime, Model: kind.model, StartTime: at, EndTime: at.Add(took), Status: runs.StatusCompleted,
			AgentVersion: "1.2.3", Access: "write", CWD: "/home/ada/shop", SessionID: fmt.Sprintf("s-%d", i/2),
			CommandLine: kind.runtime + " exec --json - < prompt.md", ToolCalls: random.IntN(40),
		}
		input := int64(random.IntN(900_000) + 4000)
		usage := &runs.Usage{Input: input, Cached: input * 3 / 4, Output: input / 31, Reasoning: input / 90, Cumulative: kind.runtime == "gemini"}
		if kind.runtime == "claude" {
			cost := float64(input) * 0.0000031
			usage.CostUSD = &cost
		}
		run.Usage = usage
		exampleFailure(&run, random.IntN(24))
		if i == 0 {
			run.Status, run.EndTime, run.Usage, run.ExitCode = runs.StatusRunning, time.Time{}, nil, -1
			run.Error, run.ErrorKind, run.Signal = "", "", ""
		}
		list = append(list, run)
		at = at.Add(-time.Duration(random.ExpFloat64() * float64(14*24*time.Hour) / float64(n)))
	}
	for i := 0; i+1 < n; i += 7 {
		list[i].PreviousRunID = list[i+1].RunID
	}
	for i := 2; i+3 < n; i += 9 {
		list[i].ParentRunID = list[i+3].RunID
	}
	return list
}

// asRuns are runs without folders.
func asRuns(list []runs.Info) []runs.Run {
	out := make([]runs.Run, len(list))
	for i, info := range list {
		out[i].Info = info
	}
	return out
}

func exampleFailure(run *runs.Info, n int) {
	fail := func(kind, text string, code int) {
		run.Status, run.ErrorKind, run.Error, run.ExitCode = runs.StatusFailed, kind, text, code
		run.ErrorSummary = "agent reported failure"
	}
	switch n {
	case 0:
		fail("quota", run.Agent+": exit code 1: you have hit your usage limit; try again in 2 hours", 1)
	case 1:
		fail("timeout", run.Agent+": the run took longer than 1h0m0s", -1)
		run.Signal = "SIGTERM"
	case 2:
		fail("authentication", run.Agent+": exit code 1: not logged in", 1)
	case 3:
		run.Status, run.EndTime, run.ExitCode, run.Usage = runs.StatusCrashed, time.Time{}, -1, nil
	case 4:
		fail("agent", run.Agent+": exit code 3: stream disconnected before completion: error sending request for url", 3)
	case 5:
		run.Status, run.ErrorSummary, run.ExitCode = runs.StatusFailed, "agent killed (OOM or signal)", 137
	}
}

// exampleEntries is a conversation of the given run.
func exampleEntries(run *runs.Run) iter.Seq2[runs.Event, error] {
	at := run.StartTime
	var entries []runs.Event
	add := func(after time.Duration, e agent.Event) {
		at = at.Add(after)
		entries = append(entries, runs.Event{Time: at, Event: e})
	}
	tool := func(after, took time.Duration, id, name string, input any, output string, code int) {
		text, _ := json.Marshal(input)
		add(after, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: id, Name: name, Input: text}})
		add(took, agent.Event{Kind: agent.KindToolResult, Failed: code != 0, Tool: &agent.Tool{ID: id, Output: agent.Plain(output), ExitCode: &code}})
	}
	s := time.Second
	add(0, agent.Event{Kind: runs.KindMessage, Text: "Users who sign in are sent to /home, not to the page they came from.\nFind out why and fix it. Add a test."})
	add(s, agent.Event{Kind: agent.KindSessionStarted, SessionID: run.SessionID, Model: run.Model})
	add(2*s, agent.Event{Kind: agent.KindThinking, Text: "The redirect is probably lost between the login form and the callback. I should look at how `next` is passed on, and whether the session is renewed before it is read."})
	add(s, agent.Event{Kind: agent.KindPlan, Plan: []agent.PlanStep{{Text: "Find where the target is stored", Status: "completed"}, {Text: "Fix the redirect", Status: "in_progress"}, {Text: "Add a test", Status: "pending"}}})
	add(s, agent.Event{Kind: agent.KindText, MessageID: "m1", Delta: true, Text: "I look for the place where the target "})
	add(s/10, agent.Event{Kind: agent.KindText, MessageID: "m1", Delta: true, Text: "of the redirect is read."})
	tool(s, 1400*time.Millisecond, "t1", "shell", map[string]string{"command": "rg -n 'next=' internal/web", "workdir": "/home/ada/shop"}, "internal/web/login.go:41:\tnext := r.URL.Query().Get(\"next\")\ninternal/web/login.go:77:\t\x1b[32mhttp.Redirect\x1b[0m(w, r, \"/home\", http.StatusSeeOther)\n", 0)
	tool(2*s, 300*time.Millisecond, "t2", "read_file", map[string]any{"path": "internal/web/login.go", "limit": 120}, "package web\n\nfunc login(w http.ResponseWriter, r *http.Request) {\n\t// …\n}\n", 0)
	add(s, agent.Event{Kind: agent.KindApproval, Failed: true, Text: "not allowed in this workspace", Tool: &agent.Tool{Name: "shell", Input: json.RawMessage(`{"command":"git push origin HEAD"}`)}})
	tool(6*s, 12*s, "t3", "shell", map[string]any{"command": []string{"go", "test", "./internal/web"}}, "--- FAIL: TestLoginReturns (0.02s)\n    login_test.go:31: Location = \"/home\", want \"/cart\"\nFAIL\n", 1)
	add(s, agent.Event{Kind: agent.KindRetry, Attempt: 1, MaxAttempts: 5, Text: "stream disconnected"})
	add(s, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "internal/web/login.go", Action: "update", Diff: "@@ -41,3 +41,3 @@\n func (s *Server) login(w http.ResponseWriter, r *http.Request) {\n-\ttarget := \"/\"\n+\ttarget := cmp.Or(r.FormValue(\"next\"), \"/\")\n \tif !s.signIn(w, r) {\n"}, {Path: "internal/web/login_test.go", Action: "add"}}})
	tool(3*s, 9*s, "t4", "shell", map[string]any{"command": []string{"go", "test", "./internal/web"}}, "ok  \tshop/internal/web\t0.412s\n", 0)
	add(s, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "t5", Name: "task", Input: json.RawMessage(`{"description":"Review the change","prompt":"Read the diff and say what is wrong with it."}`)}})
	add(s, agent.Event{Kind: agent.KindText, Subagent: "t5", Text: "The diff is small. The target should be checked: an absolute address would leave the site."})
	tool(s, s/2, "t6", "edit", map[string]any{"file_path": "internal/web/login.go", "old_string": "func login() {\n\tnext := \"\"\n\trenew()\n}", "new_string": "func login() {\n\tnext := target()\n\trenew()\n}"}, "", 0)
	add(3*s, agent.Event{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t5", Output: agent.Plain("Check that the target is a path.")}})
	add(s, agent.Event{Kind: agent.KindWarning, Text: "context is 80 % full"})
	add(2*s, agent.Event{Kind: agent.KindText, Text: "## What was wrong\n\nThe target was read **after** the session had been renewed, so `next` was always empty ([RFC 9110](https://www.rfc-editor.org/rfc/rfc9110)):\n\n1. the form sends it\n2. the session is renewed\n   - which drops it\n\n| file | change |\n| --- | --- |\n| login.go | reads it first |\n\nI take only paths of this site:\n\n```go\nnext := r.FormValue(\"next\")\nif !strings.HasPrefix(next, \"/\") || strings.HasPrefix(next, \"//\") {\n\tnext = \"/home\"\n}\n```\n\nThe new test fails without the change."})
	failed := run.Status == runs.StatusFailed
	text := ""
	if failed {
		text = run.Error
	}
	add(s, agent.Event{Kind: agent.KindResult, Failed: failed, Text: text})
	return func(yield func(runs.Event, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if run.Status == runs.StatusCrashed {
			yield(runs.Event{}, errors.New("the last line is cut off"))
		}
	}
}

// exampleFile is a file of the given run.
func exampleFile(run *runs.Run, name string) (io.ReadCloser, error) {
	switch {
	case name == runs.FilePrompt:
		return textFile("Users who sign in are sent to /home, not to the page they came from.\nFind out why and fix it. Add a test.\n"), nil
	case name == runs.FileStderr && run.Status == runs.StatusFailed:
		return textFile("connecting\n\x1b[31merror\x1b[0m: the stream ended early\n"), nil
	}
	return nil, fs.ErrNotExist
}

// textFile is an open file with a text.
func textFile(text string) io.ReadCloser {
	return struct {
		io.ReadSeeker
		io.Closer
	}{strings.NewReader(text), io.NopCloser(nil)}
}

func exampleMessages(run *runs.Run) ([]runs.Message, error) {
	return []runs.Message{
		{ID: "1", Time: run.StartTime, Type: runs.MessageStart, Run: run.RunID, Body: "run started"},
		{ID: "2", Time: run.StartTime.Add(time.Second), Type: "FACT", Body: "the tests need a database"},
		{ID: "3", Time: run.StartTime.Add(time.Second), Type: "FACT", Run: "another", Body: "of another run"},
	}, nil
}

func exampleOptions() Options {
	return Options{
		Now: madeAt, Root: "/home/ada/.local/state/bus-agent/runs", Events: exampleEntries, Open: exampleFile, Messages: exampleMessages,
		Command: func(run *runs.Run) string { return "bus-agent runs tail " + run.RunID },
	}
}
