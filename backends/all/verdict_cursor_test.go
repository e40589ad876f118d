package all_test

import "github.com/busdk/bus-agent/agent"

const (
	cursorInit = `{"type":"system","subtype":"init","apiKeySource":"login","session_id":"c6b62c6f","model":"m"}` + "\n"
	cursorSaid = `{"type":"assistant","message":{"content":[{"type":"text","text":"the answer"}]},"session_id":"c6b62c6f"}` + "\n"
)

func cursorResult(subtype, failed, text string) string {
	return `{"type":"result","subtype":"` + subtype + `","is_error":` + failed + `,"result":"` + text + `","session_id":"c6b62c6f","request_id":"r"}` + "\n"
}

var cursorVerdicts = []verdict{
	{source: "tool.ndjson", text: "DONE after tool", usage: tokens(2060, 60, 84, 0)},
	{source: "tools.ndjson", text: "Done! The summary is in summary.txt", usage: tokens(155, 50, 20, 0)},
	{source: "partial.ndjson", text: "Hello there."},

	{name: "refused workspace, exit 0", source: "docs", stdout: "⚠ Workspace Trust Required\n", exit: 0, kind: agent.ErrAgent, reason: "⚠ Workspace Trust Required"},
	{name: "refused workspace on standard error, exit 0", source: "docs", stderr: "Workspace Trust Required\n", exit: 0, kind: agent.ErrAgent, reason: "the agent ended without a result", tail: "Workspace Trust Required"},
	{name: "not logged in", source: "docs", stdout: "Error: Not authenticated. Please run 'agent login'\n", exit: 1, kind: agent.ErrAuthentication, reason: "Error: Not authenticated. Please run 'agent login'"},
	{name: "not logged in on standard error", source: "docs", stderr: "Error: Not authenticated. Please run 'agent login'\n", exit: 1, kind: agent.ErrAgent, tail: "Error: Not authenticated. Please run 'agent login'"},
	{name: "model that is not permitted", source: "docs", stdout: "Model x is not permitted\n", exit: 1, kind: agent.ErrAgent},
	{name: "failed result, exit 0", source: "docs", stdout: cursorInit + cursorSaid + cursorResult("error", "true", "it broke"), exit: 0, kind: agent.ErrAgent, reason: "it broke", text: "the answer"},
	{name: "is_error under subtype success", source: "docs", stdout: cursorInit + cursorResult("success", "true", "it broke"), exit: 0, kind: agent.ErrAgent, reason: "it broke"},
	{name: "usage limit", source: "docs", stdout: cursorInit + cursorResult("error", "true", "You hit your usage limit"), exit: 1, kind: agent.ErrQuota, reason: "You hit your usage limit"},
	{name: "exit 0 without a result", source: "docs", stdout: cursorInit + cursorSaid, exit: 0, kind: agent.ErrAgent, reason: "the agent ended without a result", text: "the answer"},
	{name: "success", source: "docs", stdout: cursorInit + cursorSaid + cursorResult("success", "false", "the answer"), text: "the answer"},
	{name: "the last result succeeds", source: "docs", stdout: cursorInit + cursorResult("error", "true", "it broke") + cursorSaid + cursorResult("success", "false", "the answer"), text: "the answer"},
	{name: "the last result fails", source: "docs", stdout: cursorInit + cursorSaid + cursorResult("success", "false", "the answer") + cursorResult("error", "true", "it broke"), kind: agent.ErrAgent, reason: "it broke", text: "the answer"},
	{name: "killed", source: "docs", stdout: cursorInit, signal: true, kind: agent.ErrAgent},
}
