package codex

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/google/go-cmp/cmp"
)

// tail is what every argument list holds before the caller's own arguments.
const tail = `-c analytics.enabled=false --disable plugins`

func TestCommand(t *testing.T) {
	t.Parallel()
	const head = "exec --json --skip-git-repo-check --color never -C /w -s "
	write := registry.Invocation{Workdir: "/w", Access: agent.AccessWrite, Prompt: "p"}
	for name, c := range map[string]struct {
		change func(*registry.Invocation)
		want   string
	}{
		"write":     {func(*registry.Invocation) {}, head + "workspace-write -c sandbox_workspace_write.exclude_slash_tmp=true " + tail + " -"},
		"read":      {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, head + "read-only " + tail + " -"},
		"full":      {func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, head + "danger-full-access " + tail + " -"},
		"model":     {func(inv *registry.Invocation) { inv.Access, inv.Model = agent.AccessRead, "gpt-5.5" }, head + "read-only -m gpt-5.5 " + tail + " -"},
		"effort":    {func(inv *registry.Invocation) { inv.Access, inv.ReasoningEffort = agent.AccessRead, "xhigh" }, head + `read-only -c model_reasoning_effort="xhigh" ` + tail + " -"},
		"verbosity": {func(inv *registry.Invocation) { inv.Access, inv.Verbosity = agent.AccessRead, "low" }, head + `read-only -c model_verbosity="low" ` + tail + " -"},
		"local": {func(inv *registry.Invocation) { inv.Access, inv.Variant = agent.AccessRead, VariantLocal },
			head + "read-only --oss --local-provider ollama " + tail + " -"},
		"another local provider": {func(inv *registry.Invocation) {
			inv.Access, inv.Variant, inv.Args = agent.AccessRead, VariantLocal, []string{"--local-provider", "lmstudio"}
		}, head + "read-only --oss " + tail + " --local-provider lmstudio -"},
		"another local provider in one word": {func(inv *registry.Invocation) {
			inv.Access, inv.Variant, inv.Args = agent.AccessRead, VariantLocal, []string{"--local-provider=lmstudio"}
		}, head + "read-only --oss " + tail + " --local-provider=lmstudio -"},
		"add dirs": {func(inv *registry.Invocation) { inv.Access, inv.AddDirs = agent.AccessRead, []string{"/a b", "/c"} },
			head + "read-only --add-dir|/a b --add-dir /c " + tail + " -"},
		"setup": {func(inv *registry.Invocation) {
			inv.Access, inv.Args = agent.AccessRead, []string{"--own"}
			*inv = inv.With(registry.Setup{Args: []string{"--ignore-rules"}})
		},
			head + "read-only " + tail + " --ignore-rules --own -"},
		"a home of the caller": {func(inv *registry.Invocation) {
			inv.Access, inv.Root, inv.Env = agent.AccessRead, "/w", []string{"CODEX_HOME=/mine"}
		}, head + `read-only -c projects={"/w"={trust_level="untrusted"}} ` + tail + " -"},
		"a home of the caller, trusted": {func(inv *registry.Invocation) {
			inv.Access, inv.Root, inv.Env, inv.TrustWorkspace = agent.AccessRead, "/w", []string{"CODEX_HOME=/mine"}, true
		}, head + `read-only -c projects={"/w"={trust_level="trusted"}} ` + tail + " -"},
		"resume": {func(inv *registry.Invocation) { inv.Access, inv.Resume = agent.AccessRead, "id" },
			head + "read-only " + tail + " resume id -"},
		"images, by their files": {func(inv *registry.Invocation) {
			inv.Access, inv.Resume = agent.AccessRead, "id"
			inv.Attachments = []registry.Attachment{{Path: "/t/1.png"}, {Path: "/t/2.png"}}
		}, head + "read-only " + tail + " resume id --image=/t/1.png --image=/t/2.png -"},
		"own arguments before resume": {func(inv *registry.Invocation) {
			inv.Access, inv.Resume, inv.Args = agent.AccessRead, "id", []string{"-c", "x=1"}
		}, head + "read-only " + tail + " -c x=1 resume id -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := write
			c.change(&r)
			got, err := command(r)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(c.want)
			for i, w := range want {
				// "|" joins an option with a value that holds a space.
				if option, rest, ok := strings.Cut(w, "|"); ok {
					want = append(append(append([]string{}, want[:i]...), option, rest+" "+want[i+1]), want[i+2:]...)
					break
				}
			}
			if diff := cmp.Diff(want, got.Args); diff != "" {
				t.Error(diff)
			}
			if got.Stdin != "p" || len(got.Env) != 0 {
				t.Errorf("stdin %q, env %q", got.Stdin, got.Env)
			}
		})
	}
}

func TestPromptIsNeverAnArgument(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"-h", "--model x", "/status", "$(id)", "@file", "a\nb", strings.Repeat("x", 1<<20)} {
		got, err := command(registry.Invocation{Workdir: "/w", Access: agent.AccessRead, Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		if got.Stdin != prompt {
			t.Errorf("stdin = %.40q, want the prompt %.40q", got.Stdin, prompt)
		}
		for _, arg := range got.Args[8:] {
			if arg == prompt {
				t.Errorf("prompt %.40q is among the arguments", prompt)
			}
		}
	}
}
