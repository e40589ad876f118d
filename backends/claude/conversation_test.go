package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

func TestSessionCommand(t *testing.T) {
	t.Parallel()
	const (
		safe  = "--input-format\nstream-json\n--permission-prompt-tool\nstdio\n" + head + "--setting-sources\nuser\n--strict-mcp-config\n"
		write = "--permission-mode\ndefault\n--disallowedTools=" + lastingTools
	)
	for name, test := range map[string]struct {
		change func(*registry.Invocation)
		want   string
	}{
		"write":  {func(*registry.Invocation) {}, safe + write},
		"read":   {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, safe + "--permission-mode\ndontAsk\n--disallowedTools=" + changingTools + "," + lastingTools},
		"model":  {func(inv *registry.Invocation) { inv.Model = "opus" }, safe + write + "\n--model=opus"},
		"resume": {func(inv *registry.Invocation) { inv.Resume = "id" }, safe + write + "\n--resume=id\n--system-prompt-snapshot\noff"},
		"setup": {func(inv *registry.Invocation) {
			inv.Args = []string{"--x"}
			*inv = inv.With(registry.Setup{Args: []string{promptFileFlag, descriptor(0)}})
		}, safe + write + "\n" + promptFileFlag + "\n" + descriptor(0) + "\n--x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Access: agent.AccessWrite, Prompt: "a prompt"}
			test.change(&r)
			got, err := conversation().Command(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Join(got.Args, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Stdin != "" {
				t.Errorf("stdin %q", got.Stdin)
			}
		})
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{"command":"ls","description":"look"}`, `{"description":"see","command":"ls"}`, true},
		{`{"command":"ls"}`, `{"command":"ls -l"}`, false},
		{`{"command":"ls"}`, `{"command":"ls","run_in_background":true}`, false},
		{`{"file_path":"/a","to":"/b"}`, `{"to":"/b","file_path":"/a"}`, true},
		{`{"file_path":"/a","to":"/b"}`, `{"file_path":"/a","to":"/c"}`, false},
		{`[1]`, `[1]`, true},
		{`[1]`, `[2]`, false},
	} {
		if same := subject("T", json.RawMessage(test.a)) == subject("T", json.RawMessage(test.b)); same != test.same {
			t.Errorf("%s and %s are the same: %v", test.a, test.b, same)
		}
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, input, want string }{
		{"Write", `{"file_path":"/a","content":"/b"}`, `["/a"]`},
		{"Edit", `{"file_path":"/a","old_string":"/b","new_string":"/c"}`, `["/a"]`},
		{"MultiEdit", `{"file_path":"/a","edits":[]}`, `["/a"]`},
		{"NotebookEdit", `{"notebook_path":"/a","new_source":"/b"}`, `["/a"]`},
		{"Write", `{"file_path":"a"}`, `[""]`},
		{"Write", `{"file_path":["/a"]}`, `[""]`},
		{"Write", `{"file_path":"/a","other_path":"b"}`, `[""]`},
		{"Write", `{"content":"/a"}`, `[""]`},
		{"Write", `["/a"]`, `[""]`},
		{"Write", ``, `[""]`},
		{"Bash", `{"file_path":"/a"}`, `[]`},
		{"mcp__x__Write", `{"file_path":"/a"}`, `[]`},
	} {
		if got := fmt.Sprintf("%q", edits(test.tool, json.RawMessage(test.input))); got != test.want {
			t.Errorf("%s %s changes %s, want %s", test.tool, test.input, got, test.want)
		}
	}
}

// What a request would allow is empty where it is not known completely.
func TestRequestsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"ls","description":"d","timeout":9}`, "execute ls "},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, "execute  "},
		{"Bash", `{"command":7}`, "execute  "},
		{"Write", `{"file_path":"/w/a","content":"/b"}`, "edit  /w/a"},
		{"Edit", `{"file_path":"a"}`, "edit  "},
		{"MultiEdit", `{"file_path":"/w/a","other_path":"/b"}`, "edit  /b /w/a"},
		{"NotebookEdit", `{"notebook_path":"/w/n"}`, "edit  /w/n"},
		{"Read", `{"file_path":"/w/a","limit":9}`, "read  /w/a"},
		{"Read", `{}`, "read  "},
		{"Glob", `{"path":"/w","pattern":"/etc/*"}`, "read  "},
		{"Grep", `{"path":"/w"}`, "read  "},
		{"WebFetch", `{"url":"http://x"}`, "fetch  "},
		{"mcp__shell__run", `{"command":"ls"}`, "other  "},
		{"Task", `{}`, "other  "},
		{"bash", `{"command":"ls"}`, "other  "},
		{"ExitPlanMode", `{}`, "  "},
	} {
		tool := &agent.Tool{Name: test.tool, Input: json.RawMessage(test.input)}
		describe(tool, engine.Start{Workdir: "/w"})
		if got := string(tool.Kind) + " " + tool.Command + " " + strings.Join(tool.Files, " "); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.tool, test.input, got, test.want)
		}
	}
}
