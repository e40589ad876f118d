package cursor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const (
		head  = "-p --output-format stream-json --trust --workspace /repo "
		write = "--force --sandbox enabled"
	)
	for name, test := range map[string]struct {
		change func(*agent.Request)
		want   string
	}{
		"write":           {func(r *agent.Request) {}, head + write},
		"no access named": {func(r *agent.Request) { r.Access = "" }, head + write},
		"read":            {func(r *agent.Request) { r.Access = agent.AccessRead }, head + "--mode ask"},
		"full":            {func(r *agent.Request) { r.Access = agent.AccessFull }, head + "--force --sandbox disabled"},
		"model":           {func(r *agent.Request) { r.Model = "gpt-5" }, head + write + " --model gpt-5"},
		"resume":          {func(r *agent.Request) { r.Resolved.Setup.ResumeID = "-id" }, head + write + " --resume=-id"},
		"continue":        {func(r *agent.Request) { r.Continue = true }, head + write + " --continue"},
		"the ID found for continue": {func(r *agent.Request) {
			r.Continue, r.Resolved.Setup.ResumeID = true, "id"
		}, head + write + " --resume=id"},
		"trust changes nothing here": {func(r *agent.Request) { r.TrustWorkspace = true }, head + write},
		"no root":                    {func(r *agent.Request) { r.Resolved.Root = "" }, "-p --output-format stream-json --trust " + write},
		"setup, then the caller's arguments": {func(r *agent.Request) {
			r.Resolved.Setup.Args, r.Args = []string{"--a"}, []string{"--approve-mcps"}
		}, head + write + " --a --approve-mcps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := agent.Request{Prompt: "hello", Access: agent.AccessWrite}
			r.Resolved.Root = "/repo"
			test.change(&r)
			got, err := command(r)
			if err != nil {
				t.Fatal(err)
			}
			want := agent.Command{Args: strings.Fields(test.want), Stdin: "hello"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPromptIsText(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"-p x": "-p x", "--help": "--help", "/mcp list": "\n/mcp list", "  /x": "\n  /x", "a\n/x\n": "a\n/x\n", "ä\x00b": "ä\x00b",
	} {
		got, err := command(agent.Request{Prompt: prompt})
		if err != nil || got.Stdin != want {
			t.Errorf("%q is sent as %q, %v, want %q", prompt, got.Stdin, err, want)
		}
		if diff := cmp.Diff([]string{"-p", "--output-format", "stream-json", "--trust", "--force", "--sandbox", "enabled"}, got.Args); diff != "" {
			t.Errorf("%q is in the arguments: %s", prompt, diff)
		}
	}
}
