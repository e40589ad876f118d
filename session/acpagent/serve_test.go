package acpagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// ownID is an ID that the server has made.
var ownID = regexp.MustCompile(`"[0-9a-z]+-[0-9]+"`)

// A client gets what the agent says and does, and how the turn ends.
func TestTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	c := b.connect()
	id := c.open()
	for _, test := range []struct{ prompt, want string }{
		{"say", `agent_message_chunk {"content":{"text":"one ","type":"text"}}
agent_message_chunk {"content":{"text":"two","type":"text"}}
agent_message_chunk {"content":{"text":"three","type":"text"}}
end_turn`},
		{"think", `agent_thought_chunk {"content":{"text":"hm","type":"text"}}
agent_message_chunk {"content":{"text":"yes","type":"text"}}
end_turn`},
		{"work", `tool_call {"kind":"execute","rawInput":{"command":"ls -l"},"status":"in_progress","title":"ls -l","toolCallId":"1"}
tool_call_update {"content":[{"content":{"text":"a.txt","type":"text"},"type":"content"}],"rawOutput":{"exit_code":0},"status":"completed","toolCallId":"1"}
tool_call {"kind":"edit","locations":[{"path":"DIR/a.txt"}],"rawInput":{"file_path":"a.txt"},"status":"in_progress","title":"Edit a.txt","toolCallId":"2"}
tool_call_update {"content":[{"content":{"text":"edited","type":"text"},"type":"content"}],"status":"completed","toolCallId":"2"}
tool_call_update {"content":[{"newText":"new\n","oldText":"old\n","path":"DIR/a.txt","type":"diff"}],"locations":[{"path":"DIR/a.txt"}],"toolCallId":"2"}
plan {"entries":[{"content":"test","priority":"medium","status":"in_progress"}]}
usage_update {"size":100,"used":10}
end_turn 10 tokens`},
		{"patch", `tool_call {"content":[{"newText":"a\nb\n","path":"/w/new","type":"diff"}],"kind":"edit","locations":[{"path":"/w/new"}],"status":"completed","title":"add /w/new","toolCallId":"ID"}
tool_call {"content":[{"newText":"same\ny\n","oldText":"same\nx\n","path":"/w/two","type":"diff"},{"newText":"q","oldText":"p","path":"/w/two","type":"diff"}],"kind":"edit","locations":[{"path":"/w/two"}],"status":"completed","title":"update /w/two","toolCallId":"ID"}
tool_call {"kind":"edit","locations":[{"path":"/w/gone"}],"status":"failed","title":"delete /w/gone","toolCallId":"ID"}
end_turn`},
		{"late", `tool_call {"kind":"edit","locations":[{"path":"/w/a"}],"rawInput":{"path":"/w/a"},"status":"in_progress","title":"edit /w/a","toolCallId":"3"}
tool_call_update {"kind":"edit","locations":[{"path":"/w/a"}],"rawInput":{"path":"/w/a","x":1},"status":"in_progress","title":"edit /w/a","toolCallId":"3"}
tool_call_update {"content":[{"newText":"2\n","oldText":"1\n","path":"/w/a","type":"diff"}],"locations":[{"path":"/w/a"}],"toolCallId":"3"}
tool_call_update {"status":"completed","toolCallId":"3"}
tool_call {"content":[{"content":{"text":"none","type":"text"},"type":"content"}],"kind":"search","status":"failed","title":"grep","toolCallId":"4"}
tool_call {"content":[{"content":{"text":"not allowed","type":"text"},"type":"content"}],"kind":"execute","status":"failed","title":"bash","toolCallId":"5"}
tool_call {"kind":"other","status":"in_progress","title":"other.tool","toolCallId":"6"}
tool_call_update {"status":"completed","toolCallId":"6"}
end_turn`},
		{"tokens", `agent_message_chunk {"content":{"text":"too m","type":"text"}}
max_tokens`},
		{"refuse", "refusal"},
	} {
		got, err := c.say(id, test.prompt)
		end := string(got.StopReason)
		if got.Usage != nil {
			end += fmt.Sprintf(" %d tokens", got.Usage.TotalTokens)
		}
		all := ownID.ReplaceAllString(strings.TrimPrefix(c.take()+"\n"+end, "\n"), `"ID"`)
		if diff := cmp.Diff(test.want, all); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.prompt, err, diff)
		}
	}
}

// A turn that fails is an error with its kind, and not an empty turn.
func TestFailedTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	c := b.connect()
	id := c.open()
	for _, test := range []struct {
		prompt     string
		code       int
		kind, text string
	}{
		{"login", -32000, "authentication", "log in first"},
		{"quota", -32603, "quota", "no quota"},
		{"broken", -32603, "agent", "it is broken"},
		{" ", -32602, "", "the prompt is empty"},
		{"die", -32603, "agent", "the agent has ended"},
	} {
		_, err := c.say(id, test.prompt)
		checkRefused(t, test.prompt, err, test.code, test.kind, test.text)
	}
	// One that has ended is resumed by the next prompt.
	c.take()
	if _, err := c.say(id, "again"); err != nil || !strings.Contains(c.take(), "echo again") {
		t.Errorf("after the end of the agent: %v", err)
	}
}

func checkRefused(t *testing.T, what string, err error, code int, kind, text string) {
	t.Helper()
	refused, ok := errors.AsType[*acp.RequestError](err)
	if !ok || refused.Code != code || !strings.Contains(refused.Message, text) {
		t.Errorf("%s: %v, want code %d and %q", what, err, code, text)
		return
	}
	data, _ := refused.Data.(map[string]any)
	if got, _ := data["kind"].(string); got != kind {
		t.Errorf("%s: kind %q, want %q", what, got, kind)
	}
}

// What the user decides reaches the agent.
func TestPermissions(t *testing.T) {
	t.Parallel()
	choose := func(kind acp.PermissionOptionKind) func(acp.RequestPermissionRequest) (acp.RequestPermissionOutcome, error) {
		return func(p acp.RequestPermissionRequest) (acp.RequestPermissionOutcome, error) {
			for _, o := range p.Options {
				if o.Kind == kind {
					return acp.NewRequestPermissionOutcomeSelected(o.OptionId), nil
				}
			}
			return acp.RequestPermissionOutcome{}, errors.New("no such option")
		}
	}
	for name, test := range map[string]struct {
		choose func(acp.RequestPermissionRequest) (acp.RequestPermissionOutcome, error)
		want   string
		reason acp.StopReason
	}{
		"allow":         {choose(acp.PermissionOptionKindAllowOnce), `{"decision":"accept"}`, "end_turn"},
		"allow always":  {choose(acp.PermissionOptionKindAllowAlways), `{"decision":"accept_for_session"}`, "end_turn"},
		"reject":        {choose(acp.PermissionOptionKindRejectOnce), `{"decision":"decline"}`, "end_turn"},
		"failed client": {choose("none"), `{"decision":"decline"}`, "end_turn"},
		"unknown option": {func(acp.RequestPermissionRequest) (acp.RequestPermissionOutcome, error) {
			return acp.NewRequestPermissionOutcomeSelected("other"), nil
		}, `{"decision":"decline"}`, "end_turn"},
		"cancelled": {func(acp.RequestPermissionRequest) (acp.RequestPermissionOutcome, error) {
			return acp.NewRequestPermissionOutcomeCancelled(), nil
		}, "", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "stub")
			c := b.connect()
			c.permit = func(_ context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
				if *p.ToolCall.Title != "rm x" || *p.ToolCall.Kind != "execute" || p.ToolCall.ToolCallId != "t" || p.ToolCall.Content[0].Content.Content.Text.Text != "why not" {
					t.Errorf("the client is asked for %+v", p.ToolCall)
				}
				outcome, err := test.choose(p)
				return acp.RequestPermissionResponse{Outcome: outcome}, err
			}
			got, err := c.say(c.open(), "ask")
			said := strings.ReplaceAll(c.take(), `\"`, `"`)
			if err != nil || got.StopReason != test.reason || !strings.Contains(said, test.want) {
				t.Errorf("%v, %v, %s", got.StopReason, err, said)
			}
		})
	}
}

// A cancelled turn ends as cancelled, with the requests for permission that are open.
func TestCancel(t *testing.T) {
	t.Parallel()
	for prompt, ready := range map[string]string{"wait": "waiting", "ask": ""} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "stub")
			c := b.connect()
			asked := make(chan struct{}, 1)
			c.permit = func(ctx context.Context, _ acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
				asked <- struct{}{}
				<-ctx.Done() // it is withdrawn
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
			}
			id := c.open()
			reason := make(chan string, 1)
			go func() {
				got, err := c.say(id, prompt)
				reason <- fmt.Sprint(got.StopReason, " ", err)
			}()
			if ready != "" {
				c.has(ready)
			} else {
				<-asked
			}
			if err := c.Cancel(t.Context(), acp.CancelNotification{SessionId: id}); err != nil {
				t.Fatal(err)
			}
			if got := <-reason; got != "cancelled <nil>" {
				t.Errorf("the turn ends with %s", got)
			}
			c.take()
			got, err := c.say(id, "next")
			if said := c.take(); err != nil || got.StopReason != "end_turn" || !strings.Contains(said, "echo next") || strings.Contains(said, "resume=native-1") {
				t.Errorf("the next turn, of the same agent: %v, %v, %s", got.StopReason, err, said)
			}
		})
	}
}

// A second prompt is added to the turn, or refused where the runtime takes none.
func TestSecondPrompt(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{"stub", "stiff"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, runtime)
			c := b.connect()
			id := c.open()
			first := make(chan error, 1)
			go func() {
				_, err := c.say(id, "wait")
				first <- err
			}()
			c.has("waiting")
			got, err := c.say(id, "more")
			if runtime == "stub" {
				if err != nil || got.StopReason != "end_turn" {
					t.Errorf("%v, %v", got.StopReason, err)
				}
				c.has("steer")
			} else {
				checkRefused(t, "more", err, -32600, "", "a turn is running")
				if err := c.Cancel(t.Context(), acp.CancelNotification{SessionId: id}); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-first; err != nil {
				t.Errorf("the first prompt: %v", err)
			}
		})
	}
}

// The client changes the access, the model and the effort: while the agent runs, or by a
// restart of an agent that cannot.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{"stub", "stiff"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, runtime)
			c := b.connect()
			opened, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: b.workdir, McpServers: []acp.McpServer{}})
			if err != nil || opened.Modes == nil || opened.Modes.CurrentModeId != "write" || len(opened.Modes.AvailableModes) != 3 || len(opened.ConfigOptions) != 3 {
				t.Fatalf("%+v, %v", opened, err)
			}
			if got := opened.ConfigOptions[1].Select; got.Id != "model" || got.CurrentValue != "auto" || len(*got.Options.Ungrouped) != 3 || (*got.Options.Ungrouped)[1].Name != "Small" {
				t.Errorf("the option of the model is %+v", got)
			}
			id := opened.SessionId
			check := func(access, model, effort string) {
				t.Helper()
				testwait.Until(t, fmt.Sprintf("access %q, model %q, effort %q", access, model, effort), func() (control.Entry, bool) {
					e, err := b.store.Get(string(id))
					return e, err == nil && string(e.Access) == access && e.Model == model && string(e.ReasoningEffort) == effort
				})
			}
			if _, err := c.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: "read"}); err != nil {
				t.Fatal(err)
			}
			c.has("config_option_update")
			if _, err := c.say(id, "hello"); err != nil {
				t.Fatal(err)
			}
			check("read", "", "")
			set := func(option, value string) error {
				_, err := c.SetSessionConfigOption(t.Context(), acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{
					SessionId: id, ConfigId: acp.SessionConfigId(option), Value: acp.SessionConfigValueId(value),
				}})
				return err
			}
			for option, value := range map[string]string{"model": "big", "effort": "high", "mode": "full"} {
				if err := set(option, value); err != nil {
					t.Errorf("%s %s: %v", option, value, err)
				}
			}
			checkRefused(t, "effort", set("effort", "extreme"), -32602, "", "not a value")
			checkRefused(t, "other", set("other", "x"), -32602, "", "no option")
			c.take()
			if _, err := c.say(id, "after"); err != nil || !strings.Contains(c.take(), "resume=native-1") {
				t.Errorf("after a restart: %v", err)
			}
			check("full", "big", "high")
		})
	}
}

// A session can be listed, loaded with its conversation, resumed and closed.
func TestLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	c := b.connect()
	id := c.open()
	for _, prompt := range []string{"say", "work"} {
		if _, err := c.say(id, prompt); err != nil {
			t.Fatal(err)
		}
	}
	before := c.take()
	c.leave()

	c = b.connect()
	listed, err := c.ListSessions(t.Context(), acp.ListSessionsRequest{Cwd: &b.workdir})
	if err != nil || len(listed.Sessions) != 1 || listed.Sessions[0].SessionId != id || listed.Sessions[0].Cwd != b.workdir {
		t.Fatalf("%+v, %v", listed, err)
	}
	if _, err := c.say(id, "hello"); err == nil {
		t.Error("a session that is not open takes a prompt")
	}
	load := acp.LoadSessionRequest{SessionId: id, Cwd: b.workdir, McpServers: []acp.McpServer{}}
	if got, err := c.LoadSession(t.Context(), load); err != nil || len(got.ConfigOptions) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	user := func(text string) string {
		return `user_message_chunk {"content":{"text":"` + text + `","type":"text"}}` + "\n"
	}
	want := user("say") + strings.Replace(before, "tool_call ", user("work")+"tool_call ", 1)
	if diff := cmp.Diff(want, c.take()); diff != "" {
		t.Errorf("what is repeated (-want +got):\n%s", diff)
	}
	if _, err := c.say(id, "again"); err != nil || !strings.Contains(c.take(), "resume=native-1") {
		t.Errorf("after it was loaded: %v", err)
	}
	if _, err := c.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	if e, err := b.store.Get(string(id)); err != nil || e.State != session.StateStopped {
		t.Errorf("a closed session: %v, %v", e.State, err)
	}
	if _, err := c.ResumeSession(t.Context(), acp.ResumeSessionRequest{SessionId: id, Cwd: b.workdir}); err != nil || c.take() != "" {
		t.Errorf("resume: %v", err)
	}
	load.Cwd = t.TempDir()
	_, err = c.LoadSession(t.Context(), load)
	checkRefused(t, "an open one of another directory", err, -32602, "", "is of")
	load.SessionId = "unknown"
	_, err = c.LoadSession(t.Context(), load)
	checkRefused(t, "unknown", err, -32002, "", "no session")

	other := b.connect()
	load.SessionId = id
	_, err = other.LoadSession(t.Context(), load)
	checkRefused(t, "other directory", err, -32602, "", "is of")
	load.Cwd = b.workdir
	_, err = other.LoadSession(t.Context(), load)
	checkRefused(t, "running", err, -32600, "", "running in another process")
}

// The agent gets the MCP servers of the client, and no file keeps their values.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	servers := []acp.McpServer{
		{Stdio: &acp.McpServerStdio{Name: "My notes: 2", Command: "/bin/cat", Args: []string{"-u"}, Env: []acp.EnvVariable{{Name: "KEY", Value: "hidden-1"}}}},
		{Http: &acp.McpServerHttpInline{Name: "docs", Type: "http", Url: "https://example.com/mcp", Headers: []acp.HttpHeader{{Name: "X-Key", Value: "hidden-2"}}}},
		{Sse: &acp.McpServerSseInline{Name: "old", Type: "sse", Url: "http://localhost:1/sse", Headers: []acp.HttpHeader{}}},
	}
	const want = `mcp={Name:My_notes_2 Command:/bin/cat Args:[-u] Env:map[KEY:hidden-1]`
	c := b.connect()
	got, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: b.workdir, McpServers: servers})
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		t.Helper()
		if _, err := c.say(got.SessionId, "hello"); err != nil {
			t.Fatal(err)
		}
		return c.take()
	}
	text := said()
	for _, part := range []string{want, "Name:docs", "URL:https://example.com/mcp Headers:map[X-Key:hidden-2]", "Name:old", "SSE:true"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	e, err := b.store.Get(string(got.SessionId))
	stored, encodeErr := json.Marshal(e)
	if err != nil || encodeErr != nil || strings.Contains(string(stored), "hidden") || len(e.MCPServers) > 0 {
		t.Errorf("%s, %v, %v", stored, err, encodeErr)
	}
	if _, err := c.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: got.SessionId}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: got.SessionId, Cwd: b.workdir, McpServers: servers[:1]}); err != nil {
		t.Fatal(err)
	}
	c.take()
	if text := said(); !strings.Contains(text, want) || strings.Contains(text, "Name:docs") {
		t.Errorf("after it was loaded: %q", text)
	}
	stiff := newBench(t, "stiff").connect()
	_, err = stiff.NewSession(t.Context(), acp.NewSessionRequest{Cwd: b.workdir, McpServers: servers[:1]})
	checkRefused(t, "a runtime without MCP servers", err, -32602, "usage", "MCP")
}

// Several sessions of one client do not wait for each other.
func TestSeveralSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	c := b.connect()
	first, second := c.open(), c.open()
	if first == second {
		t.Fatal("two sessions have the same ID")
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := c.say(first, "wait")
		waiting <- err
	}()
	c.has("waiting")
	if _, err := c.say(second, "hello"); err != nil {
		t.Error(err)
	}
	if err := c.Cancel(t.Context(), acp.CancelNotification{SessionId: first}); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
