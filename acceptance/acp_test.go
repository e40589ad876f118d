//go:build acceptance

package acceptance

import (
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
