package all_test

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
)

const (
	geminiInit    = `{"type":"init","timestamp":"t","session_id":"1bca6642-a705-42f3-8405-9f5d9281ceb9","model":"gemini-2.5-flash"}` + "\n"
	geminiSuccess = `{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":1042,"input_tokens":1000,"output_tokens":42,"cached":30}}` + "\n"
)

func geminiSays(text string) string {
	return `{"type":"message","timestamp":"t","role":"assistant","content":"` + text + `","delta":true}` + "\n"
}

// geminiHTTP is how the CLI ends when the API refuses it: the exit code is the
// status modulo 256.
func geminiHTTP(status int, kind error) verdict {
	reason := fmt.Sprintf(`[API Error: {"error":{"code":%d,"message":"no"}}]`, status)
	return verdict{
		name: fmt.Sprintf("HTTP %d", status), source: "seen", exit: status % 256, kind: kind, reason: reason,
		stdout: geminiInit + fmt.Sprintf(`{"type":"result","timestamp":"t","status":"error","error":{"type":"unknown","message":%q},"stats":{}}`, reason) + "\n",
	}
}

// geminiExit is an exit code that comes with words on standard error alone.
func geminiExit(name string, code int, kind error, words string) verdict {
	return verdict{name: name, source: "seen", exit: code, kind: kind, stderr: "YOLO mode is enabled. All tool calls will be automatically approved.\n" + words + "\n", tail: words}
}

var geminiVerdicts = []verdict{
	{source: "text.ndjson", text: "ANSWER-0 from fake model", usage: tokens(1000, 30, 42, 0)},
	{source: "tool-default.ndjson", text: "DONE after tool", usage: tokens(2000, 60, 84, 0)},
	{source: "tool-yolo.ndjson", text: "DONE after tool", usage: tokens(2000, 60, 84, 0)},
	{source: "mode-auto-edit.ndjson", text: "DONE after tools", usage: tokens(4000, 120, 168, 0)},

	{source: "error-401.ndjson", exit: 145, kind: agent.ErrAuthentication, reason: `[API Error: {"error":{"code":401,"message":"fake 401","status":"UNAUTHENTICATED"}}]`},
	{source: "error-max-turns.ndjson", exit: 53, kind: agent.ErrAgent, usage: tokens(2000, 60, 84, 0),
		reason: "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json."},
	{source: "error-stream-cut.ndjson", exit: 0, kind: agent.ErrAgent, reason: "Model stream ended without a finish reason.", text: "partial partial partial partial "},

	geminiHTTP(400, agent.ErrAgent), geminiHTTP(403, agent.ErrAuthentication), geminiHTTP(404, agent.ErrAgent), geminiHTTP(429, agent.ErrQuota),
	geminiHTTP(500, agent.ErrAgent), geminiHTTP(503, agent.ErrAgent),
	{name: "exit 145 without output", source: "seen", exit: 145, kind: agent.ErrAuthentication},
	{name: "exit 173 without output", source: "seen", exit: 173, kind: agent.ErrQuota},
	{name: "exit 147 without output", source: "seen", exit: 147, kind: agent.ErrAuthentication},
	{name: "empty answer", source: "seen", exit: 0, kind: agent.ErrAgent, reason: "Model stream ended with empty response text.",
		stdout: geminiInit + `{"type":"error","timestamp":"t","severity":"error","message":"Model stream ended with empty response text."}` + "\n" +
			`{"type":"result","timestamp":"t","status":"error","stats":{}}` + "\n"},
	{name: "a failed result without a reason", source: "seen", exit: 0, kind: agent.ErrAgent, reason: "the agent failed without a reason",
		stdout: geminiInit + `{"type":"result","timestamp":"t","status":"error","stats":{}}` + "\n"},
	{name: "an error event before success", source: "seen", text: "the answer", usage: tokens(1000, 30, 42, 0),
		stdout: geminiInit + `{"type":"error","timestamp":"t","severity":"warning","message":"loop detected"}` + "\n" + geminiSays("the answer") + geminiSuccess},
	{name: "tool that is not there", source: "seen", text: "the answer", usage: tokens(1000, 30, 42, 0),
		stdout: geminiInit + `{"type":"tool_result","timestamp":"t","tool_id":"x","status":"error","error":{"type":"tool_not_registered","message":"no"}}` + "\n" + geminiSays("the answer") + geminiSuccess},
	{name: "terminated", source: "seen", stdout: geminiInit + geminiSays("half"), exit: 0, kind: agent.ErrAgent, reason: "the agent ended without a result", text: "half"},
	{name: "killed", source: "seen", stdout: geminiInit, signal: true, kind: agent.ErrAgent},
	{name: "exit 1 after success", source: "seen", stdout: geminiInit + geminiSays("the answer") + geminiSuccess, exit: 1, kind: agent.ErrAgent, text: "the answer", usage: tokens(1000, 30, 42, 0)},

	geminiExit("no login", 41, agent.ErrAuthentication, "Invalid auth method selected."),
	geminiExit("no input", 42, agent.ErrAgent, "No input provided via stdin."),
	geminiExit("broken settings", 52, agent.ErrAgent, "Error in settings.json"),
	geminiExit("too many turns without a result", 53, agent.ErrAgent, "Reached max session turns for this session."),
	geminiExit("folder that is not trusted", 55, agent.ErrAgent, "Gemini CLI is not running in a trusted directory."),
	geminiExit("unknown flag", 1, agent.ErrAgent, "Unknown argument: no-such-flag"),
	geminiExit("no answer at all", 1, agent.ErrAgent, "fetch failed"),
}
