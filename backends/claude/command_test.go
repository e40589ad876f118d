package claude

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
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
		change func(*agent.Request)
		want   string
	}{
		{"write", func(r *agent.Request) {}, safe + write},
		{"no access named", func(r *agent.Request) { r.Access = "" }, safe + write},
		{"read", func(r *agent.Request) { r.Access = agent.AccessRead }, safe + "--permission-mode\ndontAsk\n--disallowedTools=Edit,MultiEdit,Write,NotebookEdit,Monitor,Workflow,EnterWorktree,ExitWorktree,CronCreate,CronDelete,ScheduleWakeup"},
		{"full", func(r *agent.Request) { r.Access = agent.AccessFull }, safe + "--permission-mode\nbypassPermissions"},
		{"model", func(r *agent.Request) { r.Model = "opus" }, safe + write + "\n--model=opus"},
		{"effort", func(r *agent.Request) { r.ReasoningEffort = agent.EffortXHigh }, safe + write + "\n--effort=xhigh"},
		{"least effort", func(r *agent.Request) { r.ReasoningEffort = agent.EffortMinimal }, safe + write + "\n--effort=low"},
		{"turns", func(r *agent.Request) { r.MaxTurns = 3 }, safe + write + "\n--max-turns=3"},
		{"commands", func(r *agent.Request) { r.AllowCommands = []string{"go test *", "ls"} }, safe + write + "\n--allowedTools=Bash(go test *),Bash(ls)"},
		{"commands need no permission with full access", func(r *agent.Request) { r.Access, r.AllowCommands = agent.AccessFull, []string{"ls"} }, safe + "--permission-mode\nbypassPermissions"},
		{"directories", func(r *agent.Request) { r.AddDirs = []string{"/a b", "/c"} }, safe + write + "\n--add-dir=/a b\n--add-dir=/c"},
		{"resume", func(r *agent.Request) { r.Resolved.Setup.ResumeID = "-id" }, safe + write + "\n--resume=-id\n--system-prompt-snapshot\noff"},
		{"continue", func(r *agent.Request) { r.Continue = true }, safe + write + "\n--continue\n--system-prompt-snapshot\noff"},
		{"trust", func(r *agent.Request) { r.TrustWorkspace = true }, head + write},
		{"setup, then the caller's arguments", func(r *agent.Request) {
			r.Resolved.Setup.Args, r.Args = []string{"--append-system-prompt-file", "/dev/fd/3"}, []string{"--settings", "{}", "--x"}
		}, safe + write + "\n--append-system-prompt-file\n/dev/fd/3\n--settings\n{}\n--x"},
		{"settings that were merged are not repeated", func(r *agent.Request) {
			r.Resolved.Setup.Args, r.Args = []string{"--settings", "{both}"}, []string{"--settings", "{}", "--x", "--settings={}"}
		}, safe + write + "\n--settings\n{both}\n--x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := agent.Request{Prompt: "hello", Access: agent.AccessWrite}
			test.change(&r)
			got, err := command(r, false)
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
		"/cost":      "\n/cost",
		"  /cost":    "\n  /cost",
		"a\n/cost\n": "a\n/cost\n",
		"ä\x00b":     "ä\x00b",
	} {
		got, err := command(agent.Request{Prompt: prompt}, false)
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

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", " ", "x) Write(y", "a,b", "a\nb", "a\x00"} {
		_, err := command(agent.Request{AllowCommands: []string{pattern}}, false)
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
		r := agent.Request{Access: agent.AccessFull}
		r.Resolved.Environ = test.environ
		_, err := command(r, test.root)
		if ok := err == nil; ok != test.ok || err != nil && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("root %t, %q: %v", test.root, test.environ, err)
		}
	}
}

func TestTheBoundOfPromptsIsLiftedForLongOnes(t *testing.T) {
	t.Parallel()
	const name = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"
	r := agent.Request{Prompt: strings.Repeat("x", 3_000_000)}
	got, err := command(r, false)
	if value, ok := agent.LookupEnv(got.Env, name); err != nil || !ok || value != "10485759" {
		t.Errorf("%s=%q, %v", name, value, err)
	}
	r.Resolved.Environ = []string{name + "=1"}
	if got, err = command(r, false); err != nil || len(got.Env) != 1 {
		t.Errorf("env %q, %v, want the user's %s", got.Env, err, name)
	}
}

func TestRetriesAreLimitedUnlessTheUserSays(t *testing.T) {
	t.Parallel()
	got, err := command(agent.Request{}, false)
	if err != nil || len(got.Env) != 1 || got.Env[0] != "CLAUDE_CODE_MAX_RETRIES=3" {
		t.Errorf("env %q, %v", got.Env, err)
	}
	r := agent.Request{}
	r.Resolved.Environ = []string{"CLAUDE_CODE_MAX_RETRIES=7"}
	if got, err = command(r, false); err != nil || len(got.Env) != 0 {
		t.Errorf("env %q, %v", got.Env, err)
	}
}
