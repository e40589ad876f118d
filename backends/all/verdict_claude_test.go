package all_test

import (
	"strings"

	"github.com/busdk/bus-agent/agent"
)

const claudeInit = `{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-5-5","uuid":"u"}` + "\n"

// claudeAPIError is how the CLI ends when the API refuses it for good.
func claudeAPIError(word, status, text string) string {
	return claudeInit +
		`{"type":"assistant","message":{"id":"m","model":"<synthetic>","content":[{"type":"text","text":"` + text + `"}]},"error":"` + word + `","is_api_error_message":true,"api_error_status":` + status + `,"session_id":"s","uuid":"u"}` + "\n" +
		`{"duration_api_ms":0,"type":"result","subtype":"success","is_error":true,"api_error_status":` + status + `,"terminal_reason":"api_error","result":"` + text + `","modelUsage":{},"session_id":"s","uuid":"u"}` + "\n"
}

func claudeRetry(status, word string) string {
	return `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":` + status + `,"error":"` + word + `","session_id":"s","uuid":"u"}` + "\n"
}

const (
	claudeSaid    = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"half an answer"}]},"session_id":"s","uuid":"u"}` + "\n"
	claudeAgain   = `{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"the answer"}]},"session_id":"s","uuid":"u"}` + "\n"
	claudeSuccess = `{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"s","uuid":"u"}` + "\n"
	claudeFailed  = `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"],"session_id":"s","uuid":"u"}` + "\n"
)

var claudeVerdicts = []verdict{
	{source: "text.ndjson", text: "ANSWER-1 from fake model", usage: priced(tokens(1050, 30, 42, 0), 0.004946)},
	{source: "text-partial-messages.ndjson", text: "ANSWER-1 from fake model", usage: priced(tokens(1050, 30, 42, 0), 0.004946)},
	{source: "tool-allowed.ndjson", text: "DONE after tool", usage: priced(tokens(2100, 60, 84, 0), 0.009892)},
	{source: "tool-denied.ndjson", text: "DONE after tool", usage: priced(tokens(2100, 60, 84, 0), 0.009892)},
	{source: "permission-accept-edits.ndjson", text: "DONE after tools", usage: priced(tokens(6300, 180, 252, 0), 0.029675999999999998)},
	{source: "two-results.ndjson", text: "DONE after tools", usage: priced(tokens(3150, 90, 126, 0), 0.014838)},
	{source: "resume.ndjson", resume: "5e551011-0000-4000-8000-000000000001", text: "ANSWER-2 from fake model", usage: priced(tokens(1050, 30, 42, 0), 0.004946)},

	{source: "error-401-one-request.ndjson", hang: true, kind: agent.ErrAuthentication, reason: "authentication_failed (HTTP 401)"},
	{source: "error-401-retries.ndjson", hang: true, kind: agent.ErrAuthentication, reason: "Failed to authenticate. API Error: 401 fake 401"},
	{source: "error-no-key.ndjson", exit: 1, kind: agent.ErrAuthentication, reason: "Not logged in · Please run /login"},
	{source: "error-max-turns.ndjson", exit: 1, kind: agent.ErrAgent, reason: "Reached maximum number of turns (2)", usage: priced(tokens(2100, 60, 84, 0), 0.009892)},
	{source: "error-interrupted.ndjson", exit: 0, kind: agent.ErrAgent, reason: "the turn was interrupted",
		text: "word0 word1 word2 word3 word4 word5 word6 word7 ", usage: priced(tokens(1050, 30, 16, 0), 0.004426)},
	{source: "resume-bad.ndjson", exit: 1, resume: "cccccccc-1111-4222-8333-bbbbbbbbbbbb", kind: agent.ErrAgent,
		reason: "No conversation found with session ID: cccccccc-1111-4222-8333-bbbbbbbbbbbb"},

	{name: "is_error under subtype success, exit 0", source: "seen", stdout: claudeAPIError("server_error", "500", "API Error: 500"), exit: 0, kind: agent.ErrAgent, reason: "API Error: 500"},
	{name: "HTTP 400", source: "seen", stdout: claudeAPIError("invalid_request", "400", "API Error: 400"), exit: 1, kind: agent.ErrAgent, reason: "API Error: 400"},
	{name: "HTTP 403", source: "seen", stdout: claudeAPIError("authentication_failed", "403", "API Error: 403"), exit: 1, kind: agent.ErrAuthentication, reason: "API Error: 403"},
	{name: "HTTP 404, unknown model", source: "seen", stdout: claudeAPIError("model_not_found", "404", "no such model"), exit: 1, kind: agent.ErrAgent, reason: "no such model",
		stderr: "[claude-code:unrecognized_model] {}\n", tail: "[claude-code:unrecognized_model] {}"},
	{name: "HTTP 413", source: "seen", stdout: claudeAPIError("invalid_request", "413", "too large"), exit: 1, kind: agent.ErrAgent, reason: "too large"},
	{name: "HTTP 429", source: "seen", stdout: claudeInit + claudeRetry("429", "rate_limit") + claudeAPIError("rate_limit", "429", "API Error: 429"), exit: 1, kind: agent.ErrQuota, reason: "API Error: 429"},
	{name: "HTTP 500", source: "seen", stdout: claudeInit + claudeRetry("500", "server_error") + claudeAPIError("server_error", "500", "API Error: 500"), exit: 1, kind: agent.ErrAgent, reason: "API Error: 500"},
	{name: "HTTP 529", source: "seen", stdout: claudeAPIError("server_error", "529", "Repeated 529 Overloaded"), exit: 1, kind: agent.ErrAgent, reason: "Repeated 529 Overloaded"},
	{name: "connection refused", source: "seen", stdout: claudeInit + claudeRetry("null", "unknown") + claudeAPIError("unknown", "null", "Connection error."), exit: 1, kind: agent.ErrAgent, reason: "Connection error."},
	{name: "the word for a login without a status", source: "seen", stdout: claudeAPIError("authentication_failed", "null", "Please run /login"), exit: 1, kind: agent.ErrAuthentication, reason: "Please run /login"},
	{name: "budget", source: "seen", stdout: claudeInit + `{"type":"result","subtype":"error_max_budget_usd","is_error":true,"session_id":"s","uuid":"u"}` + "\n", exit: 1, kind: agent.ErrAgent, reason: "the budget is used up"},
	{name: "retries that end well", source: "seen", stdout: claudeInit + claudeRetry("500", "server_error") + claudeRetry("429", "rate_limit") + claudeAgain + claudeSuccess, text: "the answer"},
	{name: "repeated after a lost connection", source: "seen", stdout: claudeInit + claudeSaid + claudeRetry("null", "unknown") + claudeAgain + claudeSuccess, text: "the answer", repeated: true},
	{name: "the last result fails", source: "seen", stdout: claudeInit + claudeAgain + claudeSuccess + claudeFailed, exit: 0, kind: agent.ErrAgent, reason: "it broke", text: "the answer"},
	{name: "the last result succeeds", source: "seen", stdout: claudeInit + claudeFailed + claudeAgain + claudeSuccess, text: "the answer"},
	{name: "cumulative usage after resume", source: "seen", resume: "5e551011-0000-4000-8000-000000000001", stdout: claudeInit + claudeAgain +
		`{"type":"result","subtype":"success","is_error":false,"result":"the answer","total_cost_usd":0.0099,"modelUsage":{"m":{"inputTokens":2000,"outputTokens":84,"cacheReadInputTokens":60,"cacheCreationInputTokens":40,"costUSD":0.0099}},"session_id":"s","uuid":"u"}` + "\n",
		text: "the answer", usage: cumulative(priced(tokens(2100, 60, 84, 0), 0.0099))},

	{name: "interrupted before the first byte", source: "seen", stdout: claudeInit + `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"session_id":"s","uuid":"u"}` + "\n",
		exit: 0, kind: agent.ErrAgent, reason: "the agent ended without a result"},
	{name: "terminated", source: "seen", stdout: claudeInit + claudeSaid, exit: 143, kind: agent.ErrAgent, text: "half an answer"},
	{name: "killed", source: "seen", stdout: claudeInit + claudeSaid, signal: true, kind: agent.ErrAgent, text: "half an answer"},
	{name: "no login and no result", source: "seen", stdout: strings.Join(strings.SplitAfter(claudeAPIError("authentication_failed", "401", "Please run /login"), "\n")[:2], ""), exit: 1, kind: agent.ErrAuthentication, reason: "Please run /login"},
	{name: "exit 1 after success", source: "seen", stdout: claudeInit + claudeAgain + claudeSuccess, exit: 1, kind: agent.ErrAgent, text: "the answer"},
	{name: "unknown flag", source: "seen", stderr: "error: unknown option '--no-such-flag'\n", exit: 1, kind: agent.ErrAgent, tail: "error: unknown option '--no-such-flag'"},
	{name: "session in use", source: "seen", stderr: "Error: Session ID s is already in use.\n", exit: 1, kind: agent.ErrAgent, tail: "Error: Session ID s is already in use."},
	{name: "prompt too long", source: "seen", stderr: "Error: piped stdin input exceeds 10MB.\n", exit: 1, kind: agent.ErrAgent, tail: "Error: piped stdin input exceeds 10MB."},
	{name: "missing prompt file", source: "seen", stderr: "Append system prompt file not found\n", exit: 1, kind: agent.ErrAgent, tail: "Append system prompt file not found"},
	{name: "root", source: "seen", stderr: "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n", exit: 1, kind: agent.ErrAgent,
		tail: "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"},
}
