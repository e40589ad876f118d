package more

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// A list of tools never adds to those of the access.
func TestListsOfToolsAddNone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rt     registry.Runtime
		access agent.Access
		allow  string
		deny   string
		want   string // part of the arguments or variables; "" for a refusal
	}{
		{pi(), agent.AccessWrite, "read,bash", "", "--tools\nread\n"},
		{pi(), agent.AccessFull, "bash,read", "", "--tools\nread,bash\n"},
		{pi(), agent.AccessRead, "", "grep,write", "--tools\nread,find,ls\n"},
		{pi(), agent.AccessRead, "write", "", ""},
		{pi(), agent.AccessRead, "", "read,grep,find,ls", ""},
		{droid(), agent.AccessRead, "Read,Edit", "", "--only-tools=Read\n"},
		{droid(), agent.AccessRead, "Execute", "", ""},
		{droid(), agent.AccessWrite, "", "Create", "--only-tools=Read,LS,Grep,Glob,Edit,ApplyPatch\n"},
		{droid(), agent.AccessFull, "Read,Execute", "", "--only-tools=Read,Execute\n"},
		{droid(), agent.AccessFull, "", "Execute", "--remove-tools=Execute\n"},
		{opencode(), agent.AccessRead, "read,bash,apply_patch,edit,write", "", `={"**":"deny","bash *":"deny","doom_loop *":"allow","edit *":"deny","external_directory *":"deny","read *":"allow"}`},
		{opencode(), agent.AccessFull, "read", "", `={"**":"deny","doom_loop *":"allow","external_directory *":"allow","read *":"allow"}`},
		{opencode(), agent.AccessWrite, "", "write,glob", `={"*":"allow","bash *":"deny","edit *":"deny","external_directory *":"deny","glob *":"deny","task *":"deny"}`},
		{opencode(), agent.AccessWrite, "read,write", "", ""},
	} {
		inv := registry.Invocation{Access: test.access, Prompt: "p", AllowTools: names(test.allow), DenyTools: names(test.deny)}
		err := test.rt.Run.Check(inv)
		var command agent.Command
		if err == nil {
			command, err = test.rt.Run.Command(inv)
		}
		if test.want == "" && errors.Is(err, agent.ErrUsage) {
			continue
		}
		got := strings.Join(slices.Concat(command.Args, command.Env), "\n") + "\n"
		if err != nil || test.want == "" || !strings.Contains(got, test.want) {
			t.Errorf("%s with access %s, allowed %q, denied %q: %q, %v; want %q", test.rt.ID, test.access, test.allow, test.deny, got, err, test.want)
		}
	}
}

func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// The session of opencode requests an approval for what the access does not permit.
func TestAllowedToolsOfASessionAsk(t *testing.T) {
	t.Parallel()
	command, err := opencode().Session.Command(registry.Invocation{Access: agent.AccessRead, AllowTools: []string{"bash", "glob"}})
	want := opencodePermissions + `={"**":"deny","bash *":"ask","doom_loop *":"allow","external_directory *":"ask","glob *":"allow"}`
	if err != nil || !slices.Contains(command.Env, want) {
		t.Errorf("the variables are %q, want %s: %v", command.Env, want, err)
	}
}

// It requests one for a call of a tool of an MCP server too, unless the access is full.
func TestServersOfASessionAsk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		access agent.Access
		allow  string
		deny   string
		want   string
	}{
		{agent.AccessRead, "", "", `{"*":"allow","bash *":"ask","edit *":"ask","external_directory *":"ask","notes_**":"ask","task *":"ask"}`},
		{agent.AccessWrite, "", "notes_add", `{"*":"allow","bash *":"ask","external_directory *":"ask","notes_**":"ask","notes_add *":"deny","task *":"ask"}`},
		{agent.AccessWrite, "notes_add,glob", "", `{"**":"deny","doom_loop *":"allow","external_directory *":"ask","glob *":"allow","notes_add *":"ask"}`},
		{agent.AccessFull, "", "", `{"*":"allow"}`},
	} {
		command, err := opencode().Session.Command(registry.Invocation{
			Access: test.access, AllowTools: names(test.allow), DenyTools: names(test.deny),
			MCPServers: []agent.MCPServer{{Name: "notes", Command: "/notes"}},
		})
		if err != nil || !slices.Contains(command.Env, opencodePermissions+"="+test.want) {
			t.Errorf("%+v: the variables are %q: %v", test, command.Env, err)
		}
	}
}
