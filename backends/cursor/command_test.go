package cursor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const (
		head  = "-p --output-format stream-json --trust --workspace /repo "
		write = "--force --sandbox enabled"
	)
	for name, test := range map[string]struct {
		change func(*registry.Invocation)
		want   string
	}{
		"write":           {func(inv *registry.Invocation) {}, head + write},
		"no access named": {func(inv *registry.Invocation) { inv.Access = "" }, head + write},
		"read":            {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, head + "--mode ask"},
		"full":            {func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, head + "--force --sandbox disabled"},
		"model":           {func(inv *registry.Invocation) { inv.Model = "gpt-5" }, head + write + " --model gpt-5"},
		"resume":          {func(inv *registry.Invocation) { inv.Resume = "-id" }, head + write + " --resume=-id"},
		"continue":        {func(inv *registry.Invocation) { inv.Continue = true }, head + write + " --continue"},
		"the ID found for continue": {func(inv *registry.Invocation) {
			inv.Continue = true
			*inv = inv.With(registry.Setup{Resume: "id"})
		}, head + write + " --resume=id"},
		"trust changes nothing here": {func(inv *registry.Invocation) { inv.TrustWorkspace = true }, head + write},
		"no root":                    {func(inv *registry.Invocation) { inv.Root = "" }, "-p --output-format stream-json --trust " + write},
		"setup, then the caller's arguments": {func(inv *registry.Invocation) {
			inv.Args = []string{"--approve-mcps"}
			*inv = inv.With(registry.Setup{Args: []string{"--a"}})
		}, head + write + " --a --approve-mcps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Prompt: "hello", Access: agent.AccessWrite}
			r.Root = "/repo"
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
		"-p x": "-p x", "--help": "--help", "/mcp list": "/mcp list", "  /x": "  /x", "a\n/x\n": "a\n/x\n", "ä\x00b": "ä\x00b",
	} {
		got, err := command(registry.Invocation{Prompt: prompt})
		if err != nil || got.Stdin != want {
			t.Errorf("%q is sent as %q, %v, want %q", prompt, got.Stdin, err, want)
		}
		if diff := cmp.Diff([]string{"-p", "--output-format", "stream-json", "--trust", "--force", "--sandbox", "enabled"}, got.Args); diff != "" {
			t.Errorf("%q is in the arguments: %s", prompt, diff)
		}
	}
}
