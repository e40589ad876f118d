package tmux

import (
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/session/engine"
)

// Defaults of [engine.Terminal].
const (
	DefaultWarmUp       = 5 * time.Second
	DefaultStartTimeout = 3 * time.Minute
	DefaultRetryBudget  = 10 * time.Second
	DefaultQuiet        = 3 * time.Second
	DefaultEnterPause   = 500 * time.Millisecond
	DefaultClear        = "C-u"
	DefaultInterrupt    = "Escape"
	DefaultCommands     = "/!"
)

// A terminal is a engine.Terminal as the engine uses it.
type terminal struct{ engine.Terminal }

// withDefaults returns facts with the defaults in place of what is not set.
func withDefaults(facts engine.Terminal) terminal {
	t := terminal{facts}
	for _, d := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{
		{&t.WarmUp, DefaultWarmUp}, {&t.StartTimeout, DefaultStartTimeout},
		{&t.RetryBudget, DefaultRetryBudget}, {&t.Quiet, DefaultQuiet}, {&t.EnterPause, DefaultEnterPause},
	} {
		if *d.value == 0 {
			*d.value = d.byDefault
		}
	}
	if t.Commands == "" {
		t.Commands = DefaultCommands
	}
	if t.Clear == "" {
		t.Clear = DefaultClear
	}
	if t.Interrupt == nil {
		t.Interrupt = []string{DefaultInterrupt}
	}
	return t
}

// nearEnd is how many lines at the end of what is shown are looked at.
const nearEnd = 10

// idle reports whether nothing tells that the agent is busy: the prompt is shown,
// where there is one, and no mark of work.
func (t *terminal) idle(s screen) bool {
	return t.question(s) == nil && !t.busy(s) && (t.Prompt == "" || t.prompts(s))
}

// end returns the end of what is shown.
func (t *terminal) end(s screen) screen { return screen{lines: s.lines[max(0, len(s.lines)-nearEnd):]} }

// busy reports whether a mark of work is shown.
func (t *terminal) busy(s screen) bool { return slices.ContainsFunc(t.Busy, t.end(s).contains) }

// prompts reports whether the prompt is shown.
func (t *terminal) prompts(s screen) bool { return slices.ContainsFunc(t.end(s).lines, t.isPrompt) }

// holds reports whether the input is seen to hold a message.
func (t *terminal) holds(s screen) bool {
	return t.Placeholder && !t.prompts(s) && !t.busy(s) && t.question(s) == nil
}

// questionLines is how many lines at the end tell of a question. What is said and
// what is typed stands above them.
const questionLines = 2

// question returns the question that s asks, nil where it asks none.
func (t *terminal) question(s screen) *engine.ApprovalDialog {
	end := screen{lines: s.lines[max(0, len(s.lines)-questionLines):]}
	for i, q := range t.Approvals {
		if end.contains(q.Contains) {
			return &t.Approvals[i]
		}
	}
	return nil
}

// started reports whether nothing tells that the agent is still starting.
func (t *terminal) started(s screen) bool {
	return len(t.Ready) == 0 || slices.ContainsFunc(t.Ready, t.end(s).contains)
}

// finished reports whether text, what a turn has gained, says that it is over.
func (t *terminal) finished(text string) bool {
	text = plainSpaces(text)
	return slices.ContainsFunc(t.Finished, func(mark string) bool { return strings.Contains(text, plainSpaces(mark)) })
}

// isPrompt reports whether a line is the prompt or begins with it.
func (t *terminal) isPrompt(line string) bool {
	line, prompt := strings.TrimSpace(plainSpaces(line)), strings.TrimLeft(plainSpaces(t.Prompt), " ")
	return prompt != "" && (line == strings.TrimSpace(prompt) || strings.HasPrefix(line, prompt))
}

// marked reports whether work shows.
func (t *terminal) marked() bool { return t.Prompt != "" || len(t.Busy) > 0 }

// plainSpaces replaces no-break spaces, which some CLIs put into their prompt.
func plainSpaces(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
