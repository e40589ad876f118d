package all_test

import "github.com/busdk/bus-agent/agent"

const (
	codexThread = "01a1fb7b-3d6d-7b52-8c0c-038180f7b8a6"
	codexBegin  = `{"type":"thread.started","thread_id":"` + codexThread + `"}` + "\n" + `{"type":"turn.started"}` + "\n"
	codexDone   = `{"type":"turn.completed","usage":{"input_tokens":1010,"cached_input_tokens":100,"output_tokens":50,"reasoning_output_tokens":7}}` + "\n"
)

func codexSays(id, text string) string {
	return `{"type":"item.completed","item":{"id":"` + id + `","type":"agent_message","text":"` + text + `"}}` + "\n"
}

func codexError(message string) string { return `{"type":"error","message":"` + message + `"}` + "\n" }

func codexFails(message string) string {
	return codexBegin + codexError(message) + `{"type":"turn.failed","error":{"message":"` + message + `"}}` + "\n"
}

const codexDemand = "We’re currently experiencing high demand, which may cause temporary errors."

var codexVerdicts = []verdict{
	{source: "exec-text-gpt-5.5.ndjson", text: "Hello from the fake model.", usage: tokens(1010, 100, 50, 7)},
	{source: "exec-text-gpt-6.1-sol.ndjson", text: "Hello from the fake model.", usage: tokens(1010, 100, 50, 7)},
	{source: "exec-tool-gpt-5.5.ndjson", text: "Done after tool.", usage: tokens(2020, 200, 100, 14)},
	{source: "exec-tool-exit3.ndjson", text: "Done after tool.", usage: tokens(2020, 200, 100, 14)},

	{source: "exec-error-401.ndjson", hang: true, kind: agent.ErrAuthentication,
		reason: "unexpected status 401 Unauthorized: Incorrect API key provided: sk-fake., url: http://127.0.0.1:18080/s401/v1/responses, request id: req_fake_1"},
	{source: "exec-error-500.ndjson", exit: 1, kind: agent.ErrAgent, reason: codexDemand},

	{name: "turn.failed, exit 0", source: "seen", stdout: codexFails("stream disconnected"), exit: 0, kind: agent.ErrAgent, reason: "stream disconnected"},
	{name: "HTTP 400", source: "seen", stdout: codexFails("unexpected status 400 Bad Request"), exit: 1, kind: agent.ErrAgent, reason: "unexpected status 400 Bad Request"},
	{name: "HTTP 403", source: "seen", stdout: codexFails("unexpected status 403 Forbidden"), exit: 1, kind: agent.ErrAuthentication, reason: "unexpected status 403 Forbidden"},
	{name: "HTTP 404", source: "seen", stdout: codexFails("unexpected status 404 Not Found"), exit: 1, kind: agent.ErrAgent, reason: "unexpected status 404 Not Found"},
	{name: "HTTP 429", source: "seen", stdout: codexFails("unexpected status 429 Too Many Requests"), exit: 1, kind: agent.ErrQuota, reason: "unexpected status 429 Too Many Requests"},
	{name: "quota", source: "seen", stdout: codexFails("Quota exceeded. Check your plan and billing details."), exit: 1, kind: agent.ErrQuota, reason: "Quota exceeded. Check your plan and billing details."},
	{name: "no key", source: "seen", stdout: codexFails("Missing environment variable: `OPENAI_API_KEY`."), exit: 1, kind: agent.ErrAuthentication, reason: "Missing environment variable: `OPENAI_API_KEY`."},
	{name: "answer that is incomplete", source: "seen", stdout: codexBegin + codexSays("item_0", "half an answer") + `{"type":"turn.failed","error":{"message":"Incomplete response"}}` + "\n",
		exit: 1, kind: agent.ErrAgent, reason: "Incomplete response", text: "half an answer"},
	{name: "error events that are only reconnects", source: "seen", stdout: codexBegin + codexError("Reconnecting... 1/5 ("+codexDemand+")") + codexError("Reconnecting... 2/5 ("+codexDemand+")") + codexSays("item_0", "the answer") + codexDone,
		text: "the answer", usage: tokens(1010, 100, 50, 7)},
	{name: "an error event without turn.failed", source: "seen", stdout: codexBegin + codexError("something odd") + codexSays("item_0", "the answer") + codexDone, text: "the answer", usage: tokens(1010, 100, 50, 7)},
	{name: "an error item that is a warning", source: "seen", stdout: codexBegin + `{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for x not found."}}` + "\n" + codexSays("item_1", "the answer") + codexDone,
		text: "the answer", usage: tokens(1010, 100, 50, 7)},
	{name: "repeated after a lost connection", source: "seen", stdout: codexBegin + codexSays("item_0", "half an") + codexError("Reconnecting... 1/5 (stream disconnected before completion)") + codexSays("item_1", "half an") +
		codexError("Reconnecting... 2/5 (stream disconnected before completion)") + codexSays("item_2", "half an answer") + codexDone,
		text: "half an answer", usage: tokens(1010, 100, 50, 7), repeated: true},
	{name: "a dropped stream that never comes back", source: "seen", stdout: codexBegin + codexSays("item_0", "half") + codexError("Reconnecting... 5/5 (stream disconnected before completion)") + codexSays("item_1", "half") +
		`{"type":"turn.failed","error":{"message":"stream disconnected before completion"}}` + "\n",
		exit: 1, kind: agent.ErrAgent, reason: "stream disconnected before completion", text: "half", repeated: true},
	{name: "reconnects until it is killed", source: "seen", stdout: codexBegin + codexError("Reconnecting... 1/5 (waiting for network)"), signal: true, kind: agent.ErrAgent, reason: "waiting for network"},
	{name: "cumulative usage after resume", source: "seen", resume: codexThread, files: codexSession, stdout: codexBegin + codexSays("item_0", "the answer") +
		`{"type":"turn.completed","usage":{"input_tokens":2020,"cached_input_tokens":200,"output_tokens":100,"reasoning_output_tokens":14}}` + "\n",
		text: "the answer", usage: cumulative(tokens(2020, 200, 100, 14))},

	{name: "input too large", source: "seen", stdout: codexBegin, stderr: "Reading prompt from stdin...\nError: turn/start failed: input_too_large\n", exit: 1, kind: agent.ErrAgent, tail: "Error: turn/start failed: input_too_large"},
	{name: "no prompt", source: "seen", stderr: "No prompt provided via stdin.\n", exit: 1, kind: agent.ErrAgent, tail: "No prompt provided via stdin."},
	{name: "outside a repository", source: "seen", stderr: "Not inside a trusted directory and --skip-git-repo-check was not specified.\n", exit: 1, kind: agent.ErrAgent,
		tail: "Not inside a trusted directory and --skip-git-repo-check was not specified."},
	{name: "no home", source: "seen", stderr: "Error: CODEX_HOME points to \"x\", but that path does not exist\n", exit: 1, kind: agent.ErrAgent, tail: "Error: CODEX_HOME points to \"x\", but that path does not exist"},
	{name: "unknown flag", source: "seen", stderr: "error: unexpected argument '--no-such-flag' found\n", exit: 2, kind: agent.ErrAgent, tail: "error: unexpected argument '--no-such-flag' found"},
	{name: "interrupted", source: "seen", stdout: codexBegin + codexSays("item_0", "half"), exit: 1, kind: agent.ErrAgent, text: "half"},
	{name: "exit 0 without a result", source: "seen", stdout: codexBegin + codexSays("item_0", "half"), exit: 0, kind: agent.ErrAgent, reason: "the agent ended without a result", text: "half"},
	{name: "killed", source: "seen", stdout: codexBegin, signal: true, kind: agent.ErrAgent},
}

// codexSession is the session that a run resumes.
var codexSession = map[string]string{
	".codex/bus/sessions/rollouts/2026/11/21/rollout-2026-11-21T00-00-00-" + codexThread + ".jsonl": "{}\n",
}
