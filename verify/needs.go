package verify

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// A need returns why a check does not apply to a runtime, or "".
type need = func(*Target, *registry.Runtime) string

// all returns the reason of the first of needs that has one.
func all(needs ...need) need {
	return func(t *Target, rt *registry.Runtime) string {
		for _, n := range needs {
			if why := n(t, rt); why != "" {
				return why
			}
		}
		return ""
	}
}

// unless returns why if ok is false.
func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// use returns what the checks of runs use: the runs of a runtime, or its sessions if it
// has nothing else.
func use(rt *registry.Runtime) registry.Use {
	if rt.Run.Command == nil && rt.Session != nil {
		return rt.Session.Use
	}
	return rt.Run
}

// hasRuns is a need for what sessions do not have.
func hasRuns(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Run.Command != nil, "the runtime has sessions only")
}

func hasModel(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.Model, "the runtime supports no models")
}

func hasEffort(_ *Target, rt *registry.Runtime) string {
	return unless(len(use(rt).Options.Efforts) > 0, "the runtime supports no reasoning effort")
}

func hasSystemPrompt(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.AppendSystemPrompt, "the runtime takes no additional system prompt; a request with one is refused")
}

func hasSessionSystemPrompt(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session.Options.AppendSystemPrompt, "the sessions of the runtime take no additional system prompt; a request with one is refused")
}

func hasInstructions(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Instructions != nil, "the runtime takes no instructions")
}

func hasContext(t *Target, _ *registry.Runtime) string {
	return unless(len(t.Context) > 0, "the CLI has no other context files")
}

func hasReplaces(t *Target, _ *registry.Runtime) string {
	return unless(len(t.Replaces) > 0, "the CLI reads no file in place of AGENTS.md")
}

func hasResume(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.Resume, "the runtime resumes no sessions")
}

func hasContinue(_ *Target, rt *registry.Runtime) string {
	return unless(use(rt).Options.Continue, "the runtime does not continue the latest session")
}

func hasSession(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session != nil, "the runtime holds no sessions")
}

func hasSessionResume(_ *Target, rt *registry.Runtime) string {
	return unless(rt.Session.Options.Resume, "the runtime resumes no sessions")
}

func hasSessionAccess(list ...agent.Access) need {
	return func(_ *Target, rt *registry.Runtime) string {
		ok := slices.ContainsFunc(list, func(a agent.Access) bool { return slices.Contains(rt.Session.Options.Access, a) })
		return unless(ok, fmt.Sprintf("sessions of the runtime do not support %s access", list[0]))
	}
}

func hasEdit(t *Target, _ *registry.Runtime) string {
	return unless(t.Edit != nil, "the CLI has no tool that edits files")
}

func hasCommand(t *Target, _ *registry.Runtime) string {
	return unless(t.Command != nil, "the CLI has no tool that runs commands")
}

func hasAccess(access agent.Access) need {
	return func(_ *Target, rt *registry.Runtime) string {
		return unless(slices.Contains(use(rt).Options.Access, access), fmt.Sprintf("the runtime does not support %s access", access))
	}
}

func hasPromptLimit(_ *Target, rt *registry.Runtime) string {
	return unless(rt.PromptLimit != registry.Limit{}, "the runtime has no limit")
}

// fits returns a need for a prompt of n bytes.
func fits(n int) need {
	return func(_ *Target, rt *registry.Runtime) string {
		limit := rt.PromptLimit
		ok := (limit.Bytes == 0 || n <= limit.Bytes) && (limit.Runes == 0 || utf8.RuneCountInString(long(n)) <= limit.Runes)
		return unless(ok, "the prompt is over the limit of the runtime")
	}
}
