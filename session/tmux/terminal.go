package tmux

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/session/engine"
)

// A terminal is an engine.Terminal with defaults.
type terminal struct{ engine.Terminal }

// withDefaults returns facts with the defaults in place of what is not set.
func withDefaults(facts engine.Terminal) terminal {
	t := terminal{facts}
	t.WarmUp = cmp.Or(t.WarmUp, 5*time.Second)
	t.StartTimeout = cmp.Or(t.StartTimeout, 3*time.Minute)
	t.RetryBudget = cmp.Or(t.RetryBudget, 10*time.Second)
	t.Quiet = cmp.Or(t.Quiet, 3*time.Second)
	t.EnterPause = cmp.Or(t.EnterPause, 500*time.Millisecond)
	t.Commands = cmp.Or(t.Commands, "/!")
	t.Clear = cmp.Or(t.Clear, "C-u")
	if t.Interrupt == nil {
		t.Interrupt = []string{"Escape"}
	}
	return t
}

// nearEnd is how many of the last lines show the state of the agent.
const nearEnd = 14

// idle reports whether s shows the prompt, if the CLI has one, and neither a sign of
// work nor an approval request.
func (t *terminal) idle(s screen) bool {
	return t.approval(s) == nil && !t.busy(s) && (t.Prompt == "" || t.prompts(s))
}

// end returns the last lines of s.
func (t *terminal) end(s screen) screen { return screen{lines: s.lines[max(0, len(s.lines)-nearEnd):]} }

// busy reports whether s shows a sign of work.
func (t *terminal) busy(s screen) bool {
	return slices.ContainsFunc(t.Busy, t.end(s).contains) || slices.ContainsFunc(t.end(s).lines, t.spins)
}

func (t *terminal) spins(line string) bool {
	first, _, ok := strings.Cut(strings.TrimSpace(plainSpaces(line)), " ")
	return ok && first != "" && strings.Trim(first, t.Spinner) == "" && strings.Contains(line, "…")
}

// prompts reports whether s shows the prompt.
func (t *terminal) prompts(s screen) bool { return slices.ContainsFunc(t.end(s).lines, t.isPrompt) }

// holds reports whether the input of the CLI visibly holds a message.
func (t *terminal) holds(s screen) bool {
	return t.Placeholder && !t.prompts(s) && !t.busy(s) && t.approval(s) == nil
}

// approvalLines is how many of the last lines identify an approval request. The answer
// and the input are above them.
const approvalLines = 2

// approval returns the kind of the approval request that s shows, nil for none.
func (t *terminal) approval(s screen) *engine.ApprovalDialog {
	end := screen{lines: s.lines[max(0, len(s.lines)-approvalLines):]}
	for i, q := range t.Approvals {
		if end.contains(q.Contains) {
			return &t.Approvals[i]
		}
	}
	return nil
}

// started reports whether s shows that the agent has started.
func (t *terminal) started(s screen) bool {
	return len(t.Ready) == 0 || slices.ContainsFunc(t.Ready, t.end(s).contains)
}

// restored reports whether s shows that the agent has loaded the session it resumes.
func (t *terminal) restored(s screen) bool {
	return len(t.Restored) == 0 || slices.ContainsFunc(t.Restored, s.contains)
}

// finished reports whether the text of a turn says that the turn is over.
func (t *terminal) finished(text string) bool {
	text = plainSpaces(text)
	return slices.ContainsFunc(t.Finished, func(mark string) bool { return strings.Contains(text, plainSpaces(mark)) })
}

// isPrompt reports whether a line is the prompt or begins with it.
func (t *terminal) isPrompt(line string) bool {
	line, prompt := strings.TrimSpace(plainSpaces(line)), strings.TrimLeft(plainSpaces(t.Prompt), " ")
	return prompt != "" && (line == strings.TrimSpace(prompt) || strings.HasPrefix(line, prompt))
}

// marked reports whether the screen shows if the agent works.
func (t *terminal) marked() bool { return t.Prompt != "" || len(t.Busy) > 0 }

// plainSpaces replaces no-break spaces, which some CLIs put into their prompt.
func plainSpaces(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
