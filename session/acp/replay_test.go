package acp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// modes and notices describe the recorded agent as a runtime does.
var (
	modes   = map[agent.Access]string{agent.AccessRead: "plan", agent.AccessWrite: "autoEdit", agent.AccessFull: "yolo"}
	notices = []string{"[MODE_UPDATE] "}
)

// TestRecordings plays the agent's side of recordings, and compares what the
// engine says with the other side and what it reports with what was expected.
func TestRecordings(t *testing.T) {
	t.Parallel()
	const answer = "text ANSWER-1 from fake model\n"
	const free = "usage 0 0 context 0/4000000 $0\nresult\n"
	const again = `tool_call again call_modeltest_10 execute {"command":"echo x | tee -a '/srv/project/declined'","description":"try","cwd":"/srv/project/work"}` + "\n"
	const sized = "usage 0 0 context 0/1000000\n"
	const command = `{"command":"echo x | tee -a '/srv/project/declined'","description":"try","is_background":false}`
	const otherSession = `raw {"jsonrpc":"2.0","method":"session/update","params":{"sessio` + "\n"
	for name, test := range map[string]struct {
		plain bool // the agent is not Gemini CLI, and is used without a login method and modes
		start engine.Start
		skip  []string // IDs of recorded requests that an engine does not make
		want  string
	}{
		"basic": {want: "session_started 56d9f9fa-c676-4dbf-9951-c017e1e52ea5 gemini-2.5-flash\n" +
			answer + "usage 1000 42\nresult\n" +
			"thinking **Thinking** Let me think\ntext THOUGHT-ANSWER\nusage 2000 84\nresult"},
		"cancel-stream": {want: "session_started c9f2ecf9-100b-4e2a-8406-99c505d2dc70 gemini-2.5-flash\n" +
			"text word0 word1 word2 word3 word4 word5 word6\nresult failed interrupted\n" +
			answer + "usage 1000 42\nresult"},
		"errors": {skip: []string{"6", "7"}, want: "session_started 12b565ea-2140-444f-a00a-62300538c09d gemini-2.5-flash\n" +
			"result failed authentication fake 401 (401)\nresult failed fake 400 (400)\n" +
			answer + "usage 1000 42\nresult"},
		"load-nextminute-a": {want: "session_started 4dc184e0-9b34-4fd3-b182-1472d3f3ba51 gemini-2.5-flash\n" + answer + "usage 1000 42\nresult"},
		"load-nextminute-b": {start: engine.Start{Resume: "4dc184e0-9b34-4fd3-b182-1472d3f3ba51"},
			want: "session_started 4dc184e0-9b34-4fd3-b182-1472d3f3ba51 gemini-2.5-flash\ntext ANSWER-2 from fake model\nusage 1000 42\nresult"},
		"perm-allow": {want: "session_started ac7d2572-bca4-48ec-ba3a-7cf2f7ab520f gemini-2.5-flash\ntext I will run it.\n" +
			`approval 1 run_shell_command__fc17 execute {"description":"touch acp_made.txt"} [current working directory /srv/project/work] (run it)` + "\n" +
			`tool_call run_shell_command__fc17 execute {"description":"touch acp_made.txt"}` + "\n" +
			"tool_result run_shell_command__fc17 failed=false\n" +
			"text DONE after tool\nusage 2000 84\nresult"},
		"perm-deny": {want: "session_started bb4953c1-ef8e-49c7-aeff-4f66e9548f37 gemini-2.5-flash\ntext I will run it.\n" +
			`approval 1 run_shell_command__fc19 execute {"description":"touch acp_made.txt"} [current working directory /srv/project/work] (run it)` + "\n" +
			"text DONE after tool\nusage 2000 84\nresult"},
		"opencode-interrupt": {plain: true, want: "session_started ses_de7ca1a1dffefXfDoHw1yKlfHV verify/scripted\n" +
			"text on my way\n" + free + "text turned\n" + free +
			`tool_call call_modeltest_8 execute {"cwd":"/srv/project/work"}` + "\n" +
			`tool_call again call_modeltest_8 execute {"command":"touch running; sleep 300","description":"try","cwd":"/srv/project/work"}` + "\n" +
			"tool_result call_modeltest_8 failed=false (no output) <shell_metadata> User aborted the command </shell_metadata>\n" +
			"usage 0 0 context 0/4000000 $0\nresult failed interrupted\ntext again\n" + strings.TrimSpace(free)},
		"opencode-decline": {plain: true, want: "session_started ses_de7ca1ff8ffeWr3wWNIAL8Oqr2 verify/scripted\n" +
			"text I noted 42.\n" + free + "text it was 42\n" + free +
			"usage 0 0 context 0/4000000 $0\nresult failed the model has not answered\n" + // to a message with a leading "/"
			`tool_call call_modeltest_10 execute {"cwd":"/srv/project/work"}` + "\n" + again +
			`approval 1 call_modeltest_10 execute {"command":"echo x | tee -a '/srv/project/declined'"}` + "\n" + again +
			"tool_result call_modeltest_10 failed=true The user rejected permission to use this specific tool call.\n" + strings.TrimSpace(free)},
		"opencode-effort": {plain: true, start: engine.Start{Effort: agent.EffortHigh}, want: "session_started ses_de7a69a8effegedIixieCPrKIF verify/scripted\n" +
			"text It says hi.\nusage 0 0 context 1000/4000000 $0\nusage 1000 50 (300 20) context 1000/4000000 $0\nresult\n" +
			"text Nothing else.\nusage 1000 50 (300 20) context 1000/4000000 $0\nusage 2000 100 (600 40) context 1000/4000000 $0\nresult"},
		"qwen-usage": {plain: true, start: engine.Start{Access: agent.AccessRead}, want: "session_started 77141643-1905-4f73-8962-1382a4ac489b $runtime|openai|qwen3-coder-plus(openai)\n" +
			`raw {"jsonrpc":"2.0","method":"qwen/notify/session/mode-update",` + "\ntext I look.\n" +
			`tool_call call_modeltest_2 execute {"description":"Shell"}` + "\nusage 0 0 context 1000/1000000\n" +
			`tool_call again call_modeltest_2 execute {"command":"echo hi","description":"try","is_background":false}` + "\n" +
			"tool_result call_modeltest_2 failed=false Command: echo hi Directory: /srv/project/work Output: hi Error: (none) Exit Code: 0 Signal: (none) Process Group PGID: 22360\n" +
			`raw {"jsonrpc":"2.0","id":0,"method":"craft/drainMidTurnQueue","` + "\n" +
			"text It says hi.\nusage 0 0 context 1000/1000000\nusage 2000 100 (600 40) context 1000/1000000\nresult\n" +
			"text Nothing else.\nusage 2000 100 (600 40) context 1000/1000000\nusage 3000 150 (900 60) context 1000/1000000\nresult"},
		"qwen-decline": {plain: true, want: "session_started 5dcd74d9-5bbc-4f7f-a619-d1d677be8d55 $runtime|openai|qwen3-coder-plus(openai)\n" +
			"text I noted 42.\n" + sized + "result\ntext it was 42\n" + sized + "result\ntext done\n" + sized + "result\n" +
			`tool_call call_modeltest_10 execute {"description":"Shell"}` + "\n" + sized +
			`approval 1 call_modeltest_10 execute ` + command + "\n" + `tool_call again call_modeltest_10 execute ` + command + "\n" +
			`tool_result call_modeltest_10 failed=true Tool "run_shell_command" was canceled by the user.` + "\n" +
			`raw {"jsonrpc":"2.0","id":1,"method":"craft/drainMidTurnQueue","` + "\nresult"},
		"claude-question": {plain: true, start: engine.Start{Access: agent.AccessFull}, want: `raw {"jsonrpc":"2.0","method":"_auth/status_update","params":{"a` + "\n" +
			"session_started fb4220cc-8b87-4c48-aca1-e48cf60b2587 default\nusage 0 0 context 1001/1000000\n" +
			`tool_call toolu_modeltest_2 AskUserQuestion {"description":"Asking for your input"}` + "\n" +
			`tool_call again toolu_modeltest_2 AskUserQuestion {"questions":[{"question":"Which way?","header":"Way","multiSelect":false,"options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}]}]}` + "\n" +
			"question 1 Which way? [{ Way [{left shorter} {right longer}] false false true false} {Other Type your own answer, or add a note to the option you chose above (optional). [] false true true false}]\n" +
			"usage 0 0 context 1050/1000000\n" +
			`tool_result toolu_modeltest_2 failed=false Your questions have been answered: "Which way?"="right". You can now continue with these answers in mind.` + "\n" +
			"usage 0 0 context 1001/1000000\ntext thanks\nusage 0 0 context 1050/1000000\nusage 0 0 context 1050/1000000 $0.00772\n" +
			"usage 2000 100 (600 0) context 1050/1000000 $0.00772\nresult"},
		"two-sessions": {skip: []string{"4", "6", "8"}, want: "session_started 091fcaad-6219-41c7-902a-be4e9a64e0e9 gemini-2.5-flash\n" +
			otherSession +
			answer + "usage 1000 42\nresult\n" +
			strings.Repeat(otherSession, 3) +
			"result failed interrupted\ntext ANSWER-2 from fake model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := recording(t, name)
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(replay(t, steps, test.plain, test.start, test.skip), "\n")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// step is a line of a recording.
type step struct {
	Direction string `json:"dir"`
	Line      string `json:"line"`
}

func recording(t *testing.T, name string) []step {
	data, err := os.ReadFile(filepath.Join("testdata", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if s.Direction == ">" || s.Direction == "<" {
			steps = append(steps, s)
		}
	}
	return steps
}

// replay plays a recording and returns what the engine reported.
func replay(t *testing.T, steps []step, plain bool, start engine.Start, skip []string) string {
	p, transport := newPeer(t)
	r := newRecord(t)
	e := &acp.Engine{SilenceFails: plain, Modes: map[agent.Access]string{agent.AccessRead: "plan", agent.AccessFull: "default"}}
	if !plain {
		e.AuthMethod, e.Modes, e.Notices = "gemini-api-key", modes, notices
		e.Info.Name, e.Info.Version = "bus-agent", "0"
	}
	opened := make(chan struct{})
	begin := func(workdir string) {
		defer close(opened)
		start.Workdir = workdir
		if _, err := e.Open(t.Context(), transport, start, r); err != nil {
			t.Error(err)
		}
	}
	// act does what the recorded message came of.
	act := func(m message) {
		var params struct {
			Prompt  []struct{ Text string }
			ModelID string
		}
		var result struct {
			Outcome struct{ OptionID string }
			Content map[string]string // of a form
		}
		_, _ = json.Unmarshal(m.Params, &params), json.Unmarshal(m.Result, &result)
		if m.Method != "initialize" {
			<-opened
		}
		var err error
		switch m.Method {
		case "initialize":
			begin("/srv/project/" + workdir(steps))
		case "session/prompt":
			err = e.Send(t.Context(), params.Prompt[0].Text)
		case "session/cancel":
			err = e.Interrupt(t.Context())
		case "session/set_mode":
			if !plain { // else it is part of Open
				err = e.SetAccess(t.Context(), agent.AccessFull)
			}
		case "session/set_model":
			err = e.SetModel(t.Context(), params.ModelID)
		case "":
			if m.Result == nil {
				return // a refused request
			}
			if result.Content != nil {
				err = e.AnswerQuestions(t.Context(), <-r.requests, [][]string{{result.Content["question_0"]}, nil})
				break
			}
			d := map[string]engine.Decision{"proceed_once": engine.Accept, "cancel": engine.Decline, "reject": engine.Decline}[result.Outcome.OptionID]
			err = e.Answer(t.Context(), <-r.requests, d)
		}
		if err != nil {
			t.Errorf("%s: %v", m.Method, err)
		}
	}
	ids := map[string]json.RawMessage{} // the engine's, by the recorded one
	for _, s := range steps {
		var m message
		if json.Unmarshal([]byte(s.Line), &m) != nil || m.Method != "session/request_permission" && m.ID != nil && slices.Contains(skip, string(*m.ID)) {
			continue
		}
		if s.Direction == "<" {
			synctest.Wait() // or the message would belong to the next turn
			p.say("%s", renumbered(s.Line, m, ids))
			continue
		}
		synctest.Wait() // until the engine has read what the agent said
		go act(m)
		got := p.real()
		// Some recordings are older than the forms that the engine offers.
		for _, side := range []*message{&m, &got} {
			side.Params = bytes.Replace(side.Params, []byte(`,"elicitation":{"form":{}}`), nil, 1)
		}
		if m.Method != got.Method || !same(m.Params, got.Params) || !same(m.Result, got.Result) {
			t.Errorf("the engine says %s %s %s, recorded is %s %s %s", got.Method, got.Params, got.Result, m.Method, m.Params, m.Result)
		}
		if m.ID != nil && got.ID != nil {
			ids[string(*m.ID)] = *got.ID
		}
	}
	synctest.Wait()
	p.end()
	<-r.closed
	return r.String()
}

// workdir returns the name of the folder that the session is opened in.
func workdir(steps []step) string {
	for _, s := range steps {
		if _, after, ok := strings.Cut(strings.ReplaceAll(s.Line, `": "`, `":"`), `"cwd":"/srv/project/`); ok {
			name, _, _ := strings.Cut(after, `"`)
			return name
		}
	}
	return ""
}

// real returns the next message that an agent knows.
func (p *peer) real() message {
	for {
		m, ok := p.next()
		if !ok || !strings.HasPrefix(m.Method, "_") {
			return m
		}
		p.refuse(m, -32601, "unknown")
	}
}

// renumbered gives the answer to a request the ID that the engine has given it.
func renumbered(line string, m message, ids map[string]json.RawMessage) string {
	if m.Method != "" || m.ID == nil {
		return line
	}
	return strings.Replace(line, `"id":`+string(*m.ID), `"id":`+string(ids[string(*m.ID)]), 1)
}

func same(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}
