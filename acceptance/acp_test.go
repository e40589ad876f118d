//go:build acceptance

package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// A client that others have written talks with each CLI through bus-agent acp: it gets
// the text, the thinking and the tool calls, gives permission, and leaves nothing behind.
func TestACPClients(t *testing.T) {
	t.Parallel()
	eachACPClient(t, func(t *testing.T, cli, client string) {
		outside := filepath.Join(t.TempDir(), "made")
		w := acpCLIs[cli].setup(t, modeltest.Replies(
			modeltest.Reply{modeltest.Thinking{"Look."}, modeltest.Text{"Looking."}, acpCLIs[cli].call("echo x >> " + outside)},
			answer("It is made."), answer("Good bye."),
		), nil)
		prompts := []string{"make it", "bye"}
		if client == "acpx" { // a new session for each prompt
			prompts = prompts[:1]
		}
		r := acpClients[client](w, w.acpTask(prompts...))
		if want := slices.Repeat([]string{"end_turn"}, len(prompts)); !slices.Equal(r.StopReasons, want) {
			t.Errorf("the turns end with %q", r.StopReasons)
		}
		if got := r.text("agent_message_chunk"); !strings.HasPrefix(got, "Looking.It is made.") {
			t.Errorf("the text is %q", got)
		}
		if len(r.Asked) != 1 || r.Asked[0].ToolCall.Kind != "execute" || !strings.Contains(r.Asked[0].ToolCall.Title, outside) {
			t.Errorf("asked for %+v", r.Asked)
		}
		if !r.has("tool_call", "in_progress") || !r.has("tool_call_update", "completed") {
			t.Errorf("the calls are %+v", r.Updates)
		}
		if got, err := os.ReadFile(outside); string(got) != "x\n" {
			t.Errorf("the command has written %q, %v", got, err)
		}
		w.checkProcesses()
	})
}

// A session can be loaded by another client after its agent and bus-agent were killed: the
// client gets the conversation, and the model remembers it.
func TestACPLoadAfterKill(t *testing.T) {
	t.Parallel()
	for cli := range acpCLIs {
		t.Run(cli, func(t *testing.T) {
			t.Parallel()
			w := acpCLIs[cli].setup(t, modeltest.Replies(answer("noted"), answer("never mind"), answer("It is 42.")), nil)
			first := w.goClient(w.acpTask("remember 42"))
			task := w.acpTask("again")
			task.Load, task.killed = first.SessionID, true
			if killed := w.goClient(task); killed.text("agent_message_chunk") != "notednever mind" {
				t.Errorf("the text is %q", killed.text("agent_message_chunk"))
			}
			w.awaitNone("") // their input has ended
			task = w.acpTask("which number?")
			task.Load = first.SessionID
			r := w.typescriptClient(task)
			if got := r.text("user_message_chunk"); got != "remember 42again" {
				t.Errorf("the messages of the user are %q", got)
			}
			if got := r.text("agent_message_chunk"); got != "notednever mindIt is 42." {
				t.Errorf("the text is %q", got)
			}
			checkConversation(t, w.wantRequests(3)[2], "user: remember 42", "assistant: noted", "user: again", "assistant: never mind", "user: which number?")
			w.checkProcesses()
		})
	}
}

// editorsPage returns the blocks of JSON in docs/editors.md.
func editorsPage(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/editors.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if block, ok := strings.CutPrefix(part, "json\n"); ok && i%2 == 1 {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of JSON", len(blocks))
	}
	return blocks
}

// Each agent in the settings that the page of editors shows works.
func TestACPSettingsOfEditors(t *testing.T) {
	t.Parallel()
	var settings struct {
		Servers map[string]struct {
			Type, Command string
			Args          []string
		} `json:"agent_servers"`
	}
	if err := json.Unmarshal([]byte(editorsPage(t)[0]), &settings); err != nil || len(settings.Servers) != len(acpCLIs) {
		t.Fatalf("%v, %d agents", err, len(settings.Servers))
	}
	for _, server := range settings.Servers {
		cli := server.Args[2]
		t.Run(cli, func(t *testing.T) {
			t.Parallel()
			w := acpCLIs[cli].setup(t, modeltest.Replies(answer("Hello.")), nil)
			task := w.acpTask("hello")
			task.Command = append(append([]string{w.busAgent()}, server.Args...), w.codexArgs()...)
			if r := w.typescriptClient(task); server.Command != "bus-agent" || r.text("agent_message_chunk") != "Hello." {
				t.Errorf("%s says %q", server.Command, r.text("agent_message_chunk"))
			}
		})
	}
}

// bus-agent is a runtime of bus-agent, by the definition that the page of editors shows.
func TestACPThroughItself(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"Looking."}, shell("cat fact.txt")}, answer("It is blue."), answer("Bye."),
	), map[string]string{"fact.txt": "the sky is blue\n"})
	w.path = filepath.Dir(w.busAgent())
	w.mustExec(editorsPage(t)[1], "set", "runtime-definition", "gemini-through", "-")
	w.mustExec("", "session", "start", "--agent", "gemini-through", "--model", w.modelID, "--access", "full", "--name", "outer")
	if got := w.mustExec("", "session", "send", "outer", "what colour?"); !strings.Contains(got, "It is blue.") {
		t.Errorf("the answer is %q", got)
	}
	if got := w.mustExec("", "session", "send", "outer", "bye"); !strings.Contains(got, "Bye.") {
		t.Errorf("the answer is %q", got)
	}
	if got := w.wantRequests(3)[1].ToolResults(); len(got) != 1 || !strings.Contains(got[0].Output, "the sky is blue") {
		t.Errorf("the model got the tool results %q", got)
	}
	if got := w.mustExec("", "session", "list"); strings.Count(got, "gemini") < 2 {
		t.Errorf("sessions:\n%s", got)
	}
	w.mustExec("", "session", "stop", "outer")
	w.checkProcesses()
}
