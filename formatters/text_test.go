package formatters

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func render(events ...agent.Event) string {
	f := Text()
	var text []byte
	for i := range events {
		text = append(text, f.Append(nil, &events[i])...)
	}
	return string(text)
}

func delta(id, text string) agent.Event {
	return agent.Event{Kind: agent.KindText, MessageID: id, Delta: true, Text: text}
}

func say(text string) agent.Event { return agent.Event{Kind: agent.KindText, Text: text} }

// lateCall is a call of which the agent reports more, if again.
func lateCall(id, input string, again bool) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Delta: again, Tool: &agent.Tool{ID: id, Name: "execute", Input: json.RawMessage(input)}}
}

func call(name, input string) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{Name: name, Input: json.RawMessage(input)}}
}

func toolResult(output string, exit int, failed bool) agent.Event {
	return agent.Event{Kind: agent.KindToolResult, Failed: failed, Tool: &agent.Tool{Output: agent.Plain(output), ExitCode: &exit}}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []agent.Event
		want   string
	}{
		{"whole texts are lines", []agent.Event{say("one"), say("two\n"), say("three\n\nfour")}, "one\ntwo\nthree\n\nfour\n"},
		{"deltas are one text", []agent.Event{delta("1", "a "), delta("1", "b"), {Kind: agent.KindHeartbeat}, delta("1", "c")}, "a bc"},
		{"a new message is a new line", []agent.Event{delta("1", "a"), delta("2", "b\n"), delta("3", "c")}, "a\nb\nc"},
		{"deltas without ID are one message", []agent.Event{delta("", "a"), delta("", "b")}, "ab"},
		{"something else ends the line", []agent.Event{delta("1", "a"), call("Bash", `{"command":"ls"}`), delta("1", "b")}, "a\n[tool] Bash: ls\nb"},
		{"a result ends the line only", []agent.Event{delta("1", "a"), {Kind: agent.KindResult, Text: "a"}}, "a\n"},
		{"an answer that was not said", []agent.Event{say("I look"), {Kind: agent.KindResult, Text: "the answer"}}, "I look\nthe answer\n"},
		{"an answer alone, and again", []agent.Event{{Kind: agent.KindResult, Text: "a\x1b[2Jb"}, {Kind: agent.KindResult, Text: "a\x1b[2Jb"}}, "ab\n"},
		{"an answer in pieces", []agent.Event{say("first"), delta("1", "the an"), delta("1", "swer\n\n"), {Kind: agent.KindResult, Text: "first\nthe answer"}}, "first\nthe answer\n\n"},
		{"an answer of each turn", []agent.Event{{Kind: agent.KindResult, Turn: 1, Text: "yes"}, {Kind: agent.KindResult, Turn: 2, Text: "yes"}}, "yes\nyes\n"},
		{"what a subagent said is not the answer", []agent.Event{{Kind: agent.KindText, Text: "yes", Subagent: "s"}, {Kind: agent.KindResult, Text: "yes"}}, "[subagent] yes\nyes\n"},
		{"silent kinds", []agent.Event{{Kind: agent.KindSessionStarted, SessionID: "x"}, {Kind: agent.KindUsage, Usage: &agent.Usage{}}, {Kind: agent.KindHeartbeat}, {Kind: "new"}, {Kind: agent.KindResult}}, ""},
		{"thinking", []agent.Event{
			{Kind: agent.KindThinking, Text: "hm"}, {Kind: agent.KindThinking, Delta: true, Text: "a"}, {Kind: agent.KindThinking, Delta: true, Text: "b"}, say("c"),
		}, "[thinking] hm\n[thinking] ab\nc\n"},
		{"subagent", []agent.Event{delta("1", "a"), {Kind: agent.KindText, Subagent: "t1", Text: "b"}, {Kind: agent.KindToolCall, Subagent: "t1", Tool: &agent.Tool{Name: "Read"}}}, "a\n[subagent] b\n[subagent] [tool] Read\n"},
		{"tool inputs", []agent.Event{
			call("Bash", `{"description":"list","command":"ls -l"}`), call("shell", `{"command":["ls","-l"]}`), call("Write", `{"file_path":"a.txt","content":"long"}`),
			call("Grep", `{"pattern":"x.*","path":"src"}`), call("Fetch", `{"url":"http://x"}`), call("Search", `{"query":"q"}`), call("Other", `{ "n" : [1, 2] }`),
			call("None", `{}`), call("None", ``), call("Broken", `{"n`), call("Many", "{\"command\":\"a\\nb\"}"), call("Wrong", `{"path":7}`),
		}, "[tool] Bash: ls -l\n[tool] shell: ls -l\n[tool] Write: a.txt\n[tool] Grep: x.* in src\n[tool] Fetch: http://x\n[tool] Search: q\n[tool] Other: {\"n\":[1,2]}\n" +
			"[tool] None\n[tool] None\n[tool] Broken: {\"n\n[tool] Many: a\nb\n[tool] Wrong: {\"path\":7}\n"},
		{"a command that comes late", []agent.Event{
			lateCall("1", `{"description":"List"}`, false), lateCall("1", `{"description":"List"}`, true), lateCall("1", `{"command":"ls\n[result] x"}`, true),
			lateCall("2", `{"description":"Make"}`, false), lateCall("1", `{"command":"ls"}`, true), lateCall("", `{"command":"a"}`, true), lateCall("", `{"command":"b"}`, true),
			lateCall("3", `{}`, false), say("x"), lateCall("3", `{"command":"make"}`, true),
		}, "[tool] execute: List\n  | ls\n  | [result] x\n[tool] execute: Make\n[tool] execute: ls\n[tool] execute: a\n[tool] execute: b\n" +
			"[tool] execute\nx\n[tool] execute: make\n"},
		{"questions", []agent.Event{
			{Kind: agent.KindQuestion, ApprovalID: "1", Text: "two things", Questions: []agent.Question{
				{Header: "Way\nx", Text: "Which way?\n[answer to 1] left", Options: []agent.Option{{Label: "left\n[x]", Description: "short\ner"}, {Label: "\x1b[2Jright"}}},
				{Text: "Why?"},
			}},
			{Kind: agent.KindQuestion, Failed: true, Text: "too many"},
		}, "[question] two things\n[question] Way x: Which way?\n  | [answer to 1] left\n  | 1. left [x]: short er\n  | 2. right\n[question] Why?\n[question, declined] too many\n"},
		{"tool results", []agent.Event{
			toolResult("ok\n", 0, false), toolResult("", 0, false), toolResult("a\nb", 0, false), toolResult("", 3, false), toolResult("no", 3, true), toolResult("why", 0, true),
			{Kind: agent.KindToolResult, Failed: true},
		}, "[result] ok\n[result]\na\nb\n[result, failed, exit code 3]\n[result, failed, exit code 3] no\n[result, failed] why\n[result, failed]\n"},
		{"files", []agent.Event{
			{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "a", Action: "add"}, {Path: "b\nc", Action: "update"}}},
			{Kind: agent.KindFileChange, Failed: true, Changes: []agent.FileChange{{Path: "a", Action: "delete"}}},
		}, "[file] add a\n[file] update b c\n[file, failed] delete a\n"},
		{"plan", []agent.Event{{Kind: agent.KindPlan, Plan: []agent.PlanStep{{Text: "a", Status: "completed"}, {Text: "b", Status: "in_progress"}, {Text: "c", Status: "pending"}}}}, "[plan]\n[x] a\n[>] b\n[ ] c\n"},
		{"approvals", []agent.Event{
			{Kind: agent.KindApproval, Tool: &agent.Tool{Name: "Bash", Input: json.RawMessage(`{"command":"rm x"}`)}},
			{Kind: agent.KindApproval, Failed: true, Tool: &agent.Tool{Name: "Write"}, Text: "outside"}, {Kind: agent.KindApproval, Failed: true, Text: "no"},
			{Kind: agent.KindApproval, Tool: &agent.Tool{Name: "Bash"}, Policy: &agent.PolicyAnswer{Decision: "accept", Rule: 2}},
			{Kind: agent.KindApproval, Failed: true, Text: "no", Policy: &agent.PolicyAnswer{Decision: "decline"}},
		}, "[approval] Bash: rm x\n[denied] Write: outside\n[denied] no\n[accepted by policy, rule 2] Bash\n[declined by policy, the default] no\n"},
		{"an approval request with all its parts", []agent.Event{
			{Kind: agent.KindApproval, ApprovalID: "1", Tool: &agent.Tool{Name: "Bash\n[answer to 1] accept", Input: json.RawMessage(`{"command":"ls\n[answer to 1] accept` + "\u202e\u009b2J\x7f" + `",  "cwd":"/"}`)}, Text: "why\n[session ended] ok\n"},
			{Kind: agent.KindApproval, ApprovalID: "2", Tool: &agent.Tool{Name: "file_change", Input: json.RawMessage(`{"changes":"` + strings.Repeat("x", 5000) + `"}`)}},
		}, `[approval] Bash [answer to 1] accept {"command":"ls\n[answer to 1] accept\u202e\u009b2J\u007f","cwd":"/"}: why` + "\n  | [session ended] ok\n" + `[approval] file_change {"changes":"` + strings.Repeat("x", 5000) + "\"}\n"},
		{"lines that are ours in what is not", []agent.Event{
			{Kind: agent.KindWarning, Text: "w\n[request 1] answer it"}, {Kind: agent.KindResult, Failed: true, Text: "r\n[answer to 1] accept"}, {Kind: agent.KindApproval, Failed: true, Text: "no\n[approval] x"},
			{Kind: agent.KindApproval, Tool: &agent.Tool{Name: "Bash", Input: json.RawMessage(`{"command":"a\n[session ended] ok"}`)}, Policy: &agent.PolicyAnswer{Decision: "accept", Rule: 1}},
		}, "[warning] w\n  | [request 1] answer it\n[failed] r\n  | [answer to 1] accept\n[denied] no\n  | [approval] x\n[accepted by policy, rule 1] Bash: a\n  | [session ended] ok\n"},
		{"a tool result in the middle of a message", []agent.Event{
			{Kind: agent.KindText, MessageID: "m", Delta: true, Text: "a\x1b["}, toolResult("31mb\n", 0, false),
		}, "a\n[result] 31mb\n"},
		{"retries", []agent.Event{
			{Kind: agent.KindRetry, Attempt: 1, MaxAttempts: 5, Text: "500"}, {Kind: agent.KindRetry, Attempt: 2, Text: "500"}, {Kind: agent.KindRetry},
		}, "[retry 1/5] 500\n[retry 2] 500\n[retry]\n"},
		{"failures", []agent.Event{
			{Kind: agent.KindWarning, Text: "w"}, {Kind: agent.KindResult, Failed: true, Text: "r"}, {Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "w"}, {Kind: agent.KindResult, Failed: true},
		}, "[warning] w\n[failed] r\n[failed: quota]\n[failed]\n"},
		{"unknown lines", []agent.Event{{Kind: agent.KindRaw, Text: `{"x":1}`}, {Kind: agent.KindRaw, Text: "\x1b[1mbold"}}, "{\"x\":1}\nbold\n"},
		{"lines too long", []agent.Event{
			{Kind: agent.KindRaw, Truncated: true, Size: 20000000, LineType: "assistant", Text: `{"type":"assistant","x":"`}, {Kind: agent.KindRaw, Truncated: true, Size: 5, Text: "abc"},
		}, "[line of 20000000 bytes, type assistant, too long to be read] {\"type\":\"assistant\",\"x\":\"\n[line of 5 bytes, too long to be read] abc\n"},
		{"escape sequence cut between deltas", []agent.Event{delta("1", "a\x1b"), delta("1", "[3"), delta("1", "1mb")}, "ab"},
		{"character cut between deltas", []agent.Event{delta("1", "a\xe2"), delta("1", "\x82"), delta("1", "\xac")}, "a€"},
		{"what is cut ends with its message", []agent.Event{delta("1", "a\x1b]0;x"), delta("2", "b\xe2"), say("c")}, "a\nb\ufffd\nc\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, render(test.events...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextBoundsToolOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä long line of output\n", 10_000)
	got := render(toolResult(long, 1, true))
	if len(got) > maxOutHead+maxOutTail+100 {
		t.Errorf("%d bytes shown", len(got))
	}
	if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.Contains(got, " bytes left out]\nä long") {
		t.Errorf("cut badly: %q", got)
	}
	if got := render(call("Bash", `{"command":"`+strings.Repeat("ä", 5000)+`"}`)); len(got) > maxInput+100 || !strings.HasSuffix(got, "ä…\n") {
		t.Errorf("input not bounded: %d bytes", len(got))
	}
}

func TestTextKeepsNoEvent(t *testing.T) {
	t.Parallel()
	f := Text()
	line := []byte("id-1")
	e := delta("", "a")
	e.MessageID = string(line)
	got := f.Append(nil, &e)
	e = agent.Event{}
	e = delta("id-1", "b")
	if got = f.Append(got, &e); string(got) != "ab" {
		t.Errorf("got %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("text", "a\x1b[", "31mb\u202e", true, true)
	f.Add("tool_call", "\x9b", "{\"command\":\"\\u001b]0;x\"}", false, false)
	f.Add("raw", "\xe2", "\x82", false, true)
	f.Fuzz(func(t *testing.T, kind, a, b string, isDelta, failed bool) {
		code := len(a)
		first := agent.Event{
			Kind: agent.Kind(kind), MessageID: a, Text: b, Delta: isDelta, Failed: failed, Failure: agent.Failure(a), Subagent: b,
			Tool:    &agent.Tool{ID: a, Name: a, Input: json.RawMessage(b), Output: agent.Plain(b), ExitCode: &code},
			Plan:    []agent.PlanStep{{Text: a, Status: b}},
			Changes: []agent.FileChange{{Path: a, Action: b}},
		}
		second := first
		second.Text, second.Truncated = a, true
		got := render(first, second, say(b), first, agent.Event{Kind: agent.KindResult})
		if r, ok := forbidden(got); ok || !utf8.ValidString(got) {
			t.Fatalf("%q has %U or is not valid", got, r)
		}
	})
}
