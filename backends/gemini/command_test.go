package gemini

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const write = "-o stream-json --approval-mode auto_edit --skip-trust"
	for _, test := range []struct {
		name   string
		change func(*registry.Invocation)
		want   []string // after the words of write, which a leading "!" replaces
	}{
		{"write", func(inv *registry.Invocation) {}, nil},
		{"no access named", func(inv *registry.Invocation) { inv.Access = "" }, nil},
		{"read", func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, []string{"!-o stream-json --approval-mode plan --skip-trust"}},
		{"full", func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, []string{"!-o stream-json --approval-mode yolo --skip-trust"}},
		{"model", func(inv *registry.Invocation) { inv.Model = "-pro" }, []string{"--model=-pro"}},
		{"commands", func(inv *registry.Invocation) { inv.AllowCommands = []string{"go test", "ls"} }, []string{"--allowed-tools=run_shell_command(go test)", "--allowed-tools=run_shell_command(ls)"}},
		{"commands need no permission with full access", func(inv *registry.Invocation) { inv.Access, inv.AllowCommands = agent.AccessFull, []string{"ls"} }, []string{"!-o stream-json --approval-mode yolo --skip-trust"}},
		{"directories", func(inv *registry.Invocation) { inv.AddDirs = []string{"/a b", "/c"} }, []string{"--include-directories=/a b", "--include-directories=/c"}},
		{"resume", func(inv *registry.Invocation) { inv.Resume = "id" }, []string{"--resume=id"}},
		{"trust", func(inv *registry.Invocation) { inv.TrustWorkspace = true }, []string{"!-o stream-json --approval-mode auto_edit"}},
		{"the caller's arguments come last", func(inv *registry.Invocation) { inv.Args, inv.Model = []string{"--debug"}, "m" }, []string{"--model=m", "--debug"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Prompt: "hello", Access: agent.AccessWrite}
			test.change(&r)
			got, err := command(r)
			if err != nil {
				t.Fatal(err)
			}
			want := append(strings.Fields(write), test.want...)
			if len(test.want) == 1 && test.want[0][0] == '!' {
				want = strings.Fields(test.want[0][1:])
			}
			if diff := cmp.Diff(want, got.Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Stdin != "hello" {
				t.Errorf("stdin %q", got.Stdin)
			}
		})
	}
}

func TestSystemPromptThatWouldImportIsRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"@file": true, "see\n@./x.md": true, "a@b.example": false, "a @ b": false} {
		if err := check(registry.Invocation{AppendSystemPrompt: text}); errors.Is(err, agent.ErrUsage) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := check(registry.Invocation{AppendSystemPrompt: "be brief", Env: []string{homeEnv + "=/mine"}}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("with a home of the caller: %v", err)
	}
}

func TestMCPServerWithAVariableIsRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"$HOME": true, "a${b}": true, "$$_": true, "$": false, "5 $ or $1": false, "plain": false} {
		servers := []agent.MCPServer{{Name: "first", Command: "/x"}, {Name: "second", Command: "/x", Env: map[string]string{"KEY": text}}}
		if err := check(registry.Invocation{MCPServers: servers}); errors.Is(err, agent.ErrUsage) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTrustIsNeverInherited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trust bool
		want  []string
	}{
		{false, []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=false", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"}},
		{true, []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=true"}},
	} {
		got, err := command(registry.Invocation{TrustWorkspace: test.trust})
		if err != nil || !slices.Equal(got.Env, test.want) {
			t.Errorf("env %q, %v; want %q", got.Env, err, test.want)
		}
	}
}

func TestPromptIsText(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{"-p x": "-p x", "--yolo": "--yolo", "/evil": "/evil", "a /evil": "a /evil"} {
		got, err := command(registry.Invocation{Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		if got.Stdin != want || slices.Contains(got.Args, prompt) {
			t.Errorf("%q is sent as %q with %q, want %q", prompt, got.Stdin, got.Args, want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, r := range []registry.Invocation{
		{AllowCommands: []string{""}}, {AllowCommands: []string{"a,write_file"}}, {AllowCommands: []string{"a)"}}, {AllowCommands: []string{"a\nb"}},
		{AddDirs: []string{"/a,b"}}, {AddDirs: []string{"/a "}},
	} {
		if err := check(r); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q %q: %v", r.AllowCommands, r.AddDirs, err)
		}
	}
}

func TestExitFailure(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]agent.Failure{
		0: "", 1: "", 41: agent.FailureAuthentication, 53: "", 145: agent.FailureAuthentication, 147: agent.FailureAuthentication, 173: agent.FailureQuota, 244: "", -1: "",
	} {
		if got := exitFailure(&agent.ExitError{Code: code}); got != want {
			t.Errorf("exit code %d is %q, want %q", code, got, want)
		}
	}
}

func TestQuietStderr(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"YOLO mode is enabled. All tool calls will be automatically approved.": true, "Ripgrep is not available.": true, "Error: no key": false, "": false} {
		if got := quietStderr([]byte(line)); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}
