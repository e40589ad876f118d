package described

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
)

// engineOf returns the engine of a described runtime.
func engineOf(t *testing.T, rt registry.Runtime) *acp.Engine {
	t.Helper()
	e, ok := rt.Session.Engine(registry.Invocation{}).(*acp.Engine)
	if !ok {
		t.Fatal("the engine is of another protocol")
	}
	return e
}

// TestDescribedAgentsEditOnlyWhenAsked: what their modes include is not known.
func TestDescribedAgentsEditOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for members, edits := range map[string]bool{
		`"output":"acp"`: false,
		`"output":"acp","access":{"read":[],"write":{"accept_edits":true},"full":[]}`: true,
	} {
		e := engineOf(t, described(t, members))
		for _, access := range agent.Accesses() {
			for _, kind := range []string{"edit", "delete", "move", "execute", "other", ""} {
				want := access == agent.AccessFull || edits && access == agent.AccessWrite && kind == "edit"
				if got := e.Permits(access, kind); got != want {
					t.Errorf("%s: %s permits %q: %v", members, access, kind, got)
				}
			}
		}
	}
}

const bothUses = `"name":"Mine","args":["run","{access}","{effort}","--resume={resume}","--model={model}"],
	"access":{"read":{"args":["--plan"],"mode":"plan","env":{"A":"r"}},"full":{"args":["--yolo"],"mode":"yolo"}},
	"efforts":{"low":["-l"],"high":{"args":["-h"],"option":"max"}},"env":{"B":"1"},"slash_commands":true,
	"failures":[{"kind":"quota","contains":["no credits"]}],"silence_fails":true,
	"acp":{"args":["acp","{effort}"],"authenticate":"key","models":true,"meta":{"mine":[1]}}`

func TestDescribedUses(t *testing.T) {
	t.Parallel()
	rt := described(t, bothUses)
	inv := registry.Invocation{Prompt: "p", Resume: "s", Model: "m", Access: agent.AccessRead, ReasoningEffort: agent.EffortHigh}
	for what, c := range map[string]struct {
		use     registry.Use
		options registry.Options
		command agent.Command
	}{
		"run": {rt.Run,
			registry.Options{Model: true, Resume: true, Efforts: []agent.ReasoningEffort{agent.EffortLow, agent.EffortHigh}, Access: []agent.Access{agent.AccessRead, agent.AccessFull}},
			agent.Command{Args: []string{"run", "--plan", "-h", "--resume=s", "--model=m"}, Env: []string{"A=r", "B=1"}, Stdin: "p"}},
		"session": {rt.Session.Use,
			registry.Options{Model: true, Resume: true, MCPServers: true, Efforts: []agent.ReasoningEffort{agent.EffortLow, agent.EffortHigh}, Access: []agent.Access{agent.AccessRead, agent.AccessFull}, Attachments: agent.ImageTypes()},
			agent.Command{Args: []string{"acp", "-h"}, Env: []string{"A=r", "B=1"}}},
	} {
		if diff := cmp.Diff(c.options, c.use.Options); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		command, err := c.use.Command(inv)
		if diff := cmp.Diff(c.command, command); err != nil || diff != "" || !c.use.SlashCommands {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
	}
	e := engineOf(t, rt)
	if e.Modes[agent.AccessRead] != "plan" || e.Modes[agent.AccessFull] != "yolo" || e.Efforts[agent.EffortHigh] != "max" || e.Efforts[agent.EffortLow] != "" ||
		e.AuthMethod != "key" || !e.ModelsOffered || !e.SilenceFails || e.Failure("No Credits (-1)") != agent.FailureQuota || e.AnswerFailure == nil || string(e.Meta["mine"]) != "[1]" {
		t.Errorf("engine = %+v", e)
	}
}

func TestAdditionalSystemPromptOfADefinition(t *testing.T) {
	t.Parallel()
	const text = "say \"hi\"\nto <all>"
	rt := described(t, `"args":["--system={system-prompt}"],"acp":{"meta":{"prompt":{"append":["{system-prompt}"]},"mine":1}}`)
	if !rt.Run.Options.AppendSystemPrompt || !rt.Session.Options.AppendSystemPrompt {
		t.Error("the placeholder is not seen")
	}
	for system, want := range map[string][]string{text: {"--system=" + text}, "": nil} {
		command, err := rt.Run.Command(registry.Invocation{AppendSystemPrompt: system})
		if err != nil || !slices.Equal(command.Args, want) {
			t.Errorf("%q: %q, %v", system, command.Args, err)
		}
		e, ok := rt.Session.Engine(registry.Invocation{AppendSystemPrompt: system}).(*acp.Engine)
		if !ok || string(e.Meta["mine"]) != "1" {
			t.Fatalf("%q: engine = %+v", system, e)
		}
		var prompt struct{ Append []string }
		if system == "" && e.Meta["prompt"] != nil || system != "" && (json.Unmarshal(e.Meta["prompt"], &prompt) != nil || !slices.Equal(prompt.Append, []string{text})) {
			t.Errorf("%q: meta = %s", system, e.Meta["prompt"])
		}
	}
	if rt := described(t, `"acp":{"meta":{"mine":1}}`); rt.Run.Options.AppendSystemPrompt || rt.Session.Options.AppendSystemPrompt {
		t.Error("a definition without the placeholder takes a system prompt")
	}
}

func TestListsOfToolsOfADefinition(t *testing.T) {
	t.Parallel()
	rt := described(t, `"args":["--only={allow-tools}",["--without","{deny-tools}"]],"acp":{"args":["acp","--without={deny-tools}"]}`)
	if o := rt.Run.Options; !o.AllowTools || !o.DenyTools {
		t.Error("the placeholders of a run are not seen")
	}
	if o := rt.Session.Options; o.AllowTools || !o.DenyTools {
		t.Error("the placeholder of sessions is not seen, or one that they lack is")
	}
	for want, inv := range map[string]registry.Invocation{
		"":                        {},
		"--only=read,mcp_a":       {AllowTools: []string{"read", "mcp_a"}},
		"--without\x00edit,write": {DenyTools: []string{"edit", "write"}},
	} {
		command, err := rt.Run.Command(inv)
		if err != nil || strings.Join(command.Args, "\x00") != want {
			t.Errorf("the arguments are %q, want %q: %v", command.Args, want, err)
		}
	}
	command, err := rt.Session.Command(registry.Invocation{DenyTools: []string{"edit"}})
	if err != nil || !slices.Equal(command.Args, []string{"acp", "--without=edit"}) {
		t.Errorf("the arguments of a session are %q: %v", command.Args, err)
	}
}

func TestSessionsOfADefinitionHaveTheirSettings(t *testing.T) {
	t.Parallel()
	rt := described(t, `"args":["{access}"],"access":{"full":["--yolo"]},"acp":{"access":{"read":{"env":{"A":"ask"}},"full":[]},"efforts":{"low":{"option":"l"}}}`)
	if got := rt.Session.Options.Access; !slices.Equal(got, []agent.Access{agent.AccessRead, agent.AccessFull}) || len(rt.Session.Options.Efforts) != 1 || len(rt.Run.Options.Efforts) != 0 {
		t.Errorf("a session has access %v", got)
	}
	command, err := rt.Session.Command(registry.Invocation{Access: agent.AccessRead})
	if diff := cmp.Diff(agent.Command{Env: []string{"A=ask"}}, command); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	byEnv := described(t, `"acp":{"efforts":{"low":{"env":{"E":"low"}}}}`)
	if engineOf(t, rt).EffortInArgs || !engineOf(t, byEnv).EffortInArgs {
		t.Error("the engine does not know whether a variable has the effort")
	}
	if engineOf(t, rt).ModelInArgs || !engineOf(t, described(t, `"acp":{"args":["--model={model}"]}`)).ModelInArgs {
		t.Error("the engine does not know whether the arguments have the model")
	}
	if rt := described(t, `"home":{"env":"M"},"acp":{}`); rt.Session.Options.Resume {
		t.Error("a session that is not kept can be resumed")
	}
}
