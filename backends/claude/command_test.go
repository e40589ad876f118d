package claude

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

const head = "-p\n--output-format\nstream-json\n--verbose\n"

func TestCommand(t *testing.T) {
	t.Parallel()
	const (
		safe  = head + "--setting-sources\nuser\n--strict-mcp-config\n"
		write = "--permission-mode\nacceptEdits\n--disallowedTools=EnterWorktree,ExitWorktree,CronCreate,CronDelete,ScheduleWakeup"
	)
	for _, test := range []struct {
		name   string
		change func(*registry.Invocation)
		want   string
	}{
		{"write", func(inv *registry.Invocation) {}, safe + write},
		{"no access named", func(inv *registry.Invocation) { inv.Access = "" }, safe + write},
		{"read", func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, safe + "--permission-mode\ndontAsk\n--disallowedTools=Edit,MultiEdit,Write,NotebookEdit,Monitor,Workflow,EnterWorktree,ExitWorktree,CronCreate,CronDelete,ScheduleWakeup"},
		{"full", func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, safe + "--permission-mode\nbypassPermissions"},
		{"model", func(inv *registry.Invocation) { inv.Model = "opus" }, safe + write + "\n--model=opus"},
		{"effort", func(inv *registry.Invocation) { inv.ReasoningEffort = agent.EffortXHigh }, safe + write + "\n--effort=xhigh"},
		{"least effort", func(inv *registry.Invocation) { inv.ReasoningEffort = agent.EffortMinimal }, safe + write + "\n--effort=low"},
		{"turns", func(inv *registry.Invocation) { inv.MaxTurns = 3 }, safe + write + "\n--max-turns=3"},
		{"commands", func(inv *registry.Invocation) { inv.AllowCommands = []string{"go test *", "ls"} }, safe + write + "\n--allowedTools=Bash(go test *),Bash(ls)"},
		{"commands need no permission with full access", func(inv *registry.Invocation) { inv.Access, inv.AllowCommands = agent.AccessFull, []string{"ls"} }, safe + "--permission-mode\nbypassPermissions"},
		{"directories", func(inv *registry.Invocation) { inv.AddDirs = []string{"/a b", "/c"} }, safe + write + "\n--add-dir=/a b\n--add-dir=/c"},
		{"resume", func(inv *registry.Invocation) { inv.Resume = "-id" }, safe + write + "\n--resume=-id\n--system-prompt-snapshot\noff"},
		{"continue", func(inv *registry.Invocation) { inv.Continue = true }, safe + write + "\n--continue\n--system-prompt-snapshot\noff"},
		{"denied tools", func(inv *registry.Invocation) { inv.DenyTools = []string{"Bash", "mcp__a__b"} }, safe + write + ",Bash,mcp__a__b"},
		{"denied tools with full access", func(inv *registry.Invocation) { inv.Access, inv.DenyTools = agent.AccessFull, []string{"Bash", "Edit"} }, safe + "--permission-mode\nbypassPermissions\n--disallowedTools=Bash,Edit"},
		{"allowed tools, without servers", func(inv *registry.Invocation) {
			inv.AllowTools, inv.MCPServers = []string{"Read", "Bash"}, []agent.MCPServer{{Name: "a", Command: "/a"}}
		}, safe + write + "\n--tools=Read,Bash"},
		{"allowed tools with trust, without servers", func(inv *registry.Invocation) { inv.AllowTools, inv.TrustWorkspace = []string{"Read"}, true }, head + write + "\n--tools=Read\n--strict-mcp-config"},
		{"trust", func(inv *registry.Invocation) { inv.TrustWorkspace = true }, head + write},
		{"setup, then the caller's arguments", func(inv *registry.Invocation) {
			inv.Args = []string{"--settings", "{}", "--x"}
			*inv = inv.With(registry.Setup{Args: []string{"--append-system-prompt-file", "/dev/fd/3"}})
		}, safe + write + "\n--append-system-prompt-file\n/dev/fd/3\n--settings\n{}\n--x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Prompt: "hello", Access: agent.AccessWrite}
			test.change(&r)
			got, err := command(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Join(got.Args, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Stdin != "hello" {
				t.Errorf("stdin %q", got.Stdin)
			}
		})
	}
}

func TestPromptIsText(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"-p x":       "-p x",
		"--help":     "--help",
		"/cost":      "/cost",
		"a\n/cost\n": "a\n/cost\n",
		"ä\x00b":     "ä\x00b",
	} {
		got, err := command(registry.Invocation{Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		if got.Stdin != want {
			t.Errorf("%q is sent as %q, want %q", prompt, got.Stdin, want)
		}
		for _, arg := range got.Args {
			if strings.Contains(arg, strings.TrimSpace(prompt)) && arg != "-p" {
				t.Errorf("%q is in argument %q", prompt, arg)
			}
		}
	}
}

// A run with files reads its prompt as a message.
func TestAttachmentsAreAMessage(t *testing.T) {
	t.Parallel()
	image := registry.Attachment{Attachment: agent.Attachment{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	paper := registry.Attachment{Attachment: agent.Attachment{Name: "a.pdf", Data: []byte("%PDF-1")}}
	got, err := command(registry.Invocation{Prompt: "what?", Attachments: []registry.Attachment{image, paper}})
	if err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(got.Args, " "); !strings.Contains(args, "--input-format stream-json") {
		t.Errorf("arguments %s", args)
	}
	const begin = `{"type":"user","message":{"role":"user","content":[` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},` +
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}},` +
		`{"type":"text","text":"what?"}]},"uuid":"`
	if !strings.HasPrefix(got.Stdin, begin) || strings.Count(got.Stdin, "\n") != 1 || !strings.HasSuffix(got.Stdin, "\"}\n") {
		t.Errorf("stdin %q", got.Stdin)
	}
}

func TestMergedSettingsReplaceThoseOfTheCaller(t *testing.T) {
	t.Parallel()
	inv := registry.Invocation{Args: []string{"--settings", "{}", "--x", "--settings={}"}}
	var setup registry.Setup
	if err := passSettings(map[string]json.RawMessage{"both": json.RawMessage("1")}, inv, &setup); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--settings", `{"both":1}`, "--x"}, inv.With(setup).Args); diff != "" {
		t.Error(diff)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", " ", "x) Write(y", "a,b", "a\nb", "a\x00"} {
		err := check(registry.Invocation{AllowCommands: []string{pattern}})
		if !errors.Is(err, agent.ErrUsage) {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
}

func TestFullAccessAsRoot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		root    bool
		environ []string
		ok      bool
	}{
		{false, nil, true},
		{true, nil, false},
		{true, []string{"IS_SANDBOX=1"}, true},
		{true, []string{"IS_SANDBOX=1", "IS_SANDBOX="}, false},
	} {
		r := registry.Invocation{Access: agent.AccessFull}
		r.Environ = test.environ
		err := checkAs(r, test.root)
		if ok := err == nil; ok != test.ok || err != nil && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("root %t, %q: %v", test.root, test.environ, err)
		}
	}
}

func TestTheBoundOfPromptsIsLiftedForLongOnes(t *testing.T) {
	t.Parallel()
	const name = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"
	r := registry.Invocation{Prompt: strings.Repeat("x", 3_000_000)}
	got, err := command(r)
	if value, ok := agent.LookupEnv(got.Env, name); err != nil || !ok || value != "10485759" {
		t.Errorf("%s=%q, %v", name, value, err)
	}
	r.Environ = []string{name + "=1"}
	if got, err = command(r); err != nil || len(got.Env) != 1 {
		t.Errorf("env %q, %v, want the user's %s", got.Env, err, name)
	}
}

func TestRetriesAreLimitedUnlessTheUserSays(t *testing.T) {
	t.Parallel()
	got, err := command(registry.Invocation{})
	if err != nil || len(got.Env) != 1 || got.Env[0] != "CLAUDE_CODE_MAX_RETRIES=3" {
		t.Errorf("env %q, %v", got.Env, err)
	}
	r := registry.Invocation{}
	r.Environ = []string{"CLAUDE_CODE_MAX_RETRIES=7"}
	if got, err = command(r); err != nil || len(got.Env) != 0 {
		t.Errorf("env %q, %v", got.Env, err)
	}
}
