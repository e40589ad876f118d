package tmux

import (
	"strings"
	"time"
)

// Defaults of [Terminal].
const (
	DefaultWarmUp       = 5 * time.Second
	DefaultStartTimeout = 3 * time.Minute
	DefaultRetryBudget  = 10 * time.Second
	DefaultQuiet        = 3 * time.Second
	DefaultClear        = "C-u"
	DefaultInterrupt    = "Escape"
	DefaultCommands     = "/!"
)

// A Terminal says how a CLI behaves in a terminal. Its keys are named as tmux
// names them: Enter, Escape, Down, C-c.
type Terminal struct {
	// Prompt is how the line begins in which the CLI takes messages. Empty means
	// that it cannot be told.
	Prompt string
	// Busy are texts that the CLI shows near the prompt while it works.
	Busy []string
	// WarmUp is how long a CLI without a Prompt takes to start. Zero means
	// DefaultWarmUp, less no time.
	WarmUp time.Duration
	// StartTimeout bounds the time to the first prompt, WarmUp included. Zero
	// means DefaultStartTimeout.
	StartTimeout time.Duration
	// Dialogs are questions that the CLI may ask when it starts.
	Dialogs []Dialog

	// Keys types messages as keys, in pieces, for CLIs that do not take pasted
	// text for what it is.
	Keys bool
	// Commands are the characters that make a command of a message that begins
	// with one. Empty means DefaultCommands.
	Commands string
	// EscapeFirst presses Escape between the message and Enter, for CLIs that
	// might show a list to choose from. Never for one that cancels on it.
	EscapeFirst bool
	// Clear is the key that clears the input. Empty means DefaultClear.
	Clear string
	// RetryBudget bounds the time in which a message is typed again that the
	// terminal shows nothing of. Zero means DefaultRetryBudget, less none.
	RetryBudget time.Duration

	// TypesWhileBusy says that the CLI takes a message into the turn that runs.
	TypesWhileBusy bool
	// Interrupt are the keys that end a turn. Nil means DefaultInterrupt.
	Interrupt []string
	// Quiet is how long a terminal must not change to be taken for idle when
	// nothing else tells. Zero means DefaultQuiet.
	Quiet time.Duration
	// Exit are the keys that end the CLI. Without any, the terminal hangs up.
	Exit []string
}

// A Dialog is a question that a CLI asks when it starts.
type Dialog struct {
	Contains string   // what its text contains
	Keys     []string // the answer
}

// withDefaults returns t with the defaults in place of what is not set.
func (t Terminal) withDefaults() Terminal {
	for _, d := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{
		{&t.WarmUp, DefaultWarmUp}, {&t.StartTimeout, DefaultStartTimeout},
		{&t.RetryBudget, DefaultRetryBudget}, {&t.Quiet, DefaultQuiet},
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
func (t *Terminal) idle(s screen) bool {
	lines := s.lines[max(0, len(s.lines)-nearEnd):]
	found := t.Prompt == ""
	for _, line := range lines {
		line = plainSpaces(line)
		for _, busy := range t.Busy {
			if strings.Contains(line, plainSpaces(busy)) {
				return false
			}
		}
		found = found || t.isPrompt(line)
	}
	return found
}

// isPrompt reports whether a line is the prompt or begins with it.
func (t *Terminal) isPrompt(line string) bool {
	line, prompt := strings.TrimSpace(plainSpaces(line)), strings.TrimLeft(plainSpaces(t.Prompt), " ")
	return prompt != "" && (line == strings.TrimSpace(prompt) || strings.HasPrefix(line, prompt))
}

// marked reports whether work shows.
func (t *Terminal) marked() bool { return t.Prompt != "" || len(t.Busy) > 0 }

// plainSpaces replaces no-break spaces, which some CLIs put into their prompt.
func plainSpaces(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
