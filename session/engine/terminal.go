package engine

import (
	"context"
	"sync"
	"time"
)

// A Terminal describes how an interactive CLI behaves in a terminal: how it shows
// that it is ready, how it takes messages, and what it asks. Keys have the names
// tmux gives them: Enter, Escape, Down, C-c.
type Terminal struct {
	// Prompt is the beginning of the CLI's input line. Empty means unknown: the
	// CLI is then ready after WarmUp.
	Prompt string
	// Placeholder reports that the CLI shows Prompt only in an empty input, so that
	// an input without it holds a message.
	Placeholder bool
	// Ready lists texts. The CLI shows one of them near the prompt once it has
	// started. It is for CLIs that show the prompt earlier than that; empty for all
	// others.
	Ready []string
	// Restored lists texts. The CLI shows one of them once it has loaded the session
	// that it resumes. It is for CLIs that take messages earlier than that, which the
	// model would get without the session; empty for all others.
	Restored []string
	// Busy are texts that the CLI shows near the prompt while it works.
	Busy []string
	// Spinner has the letters of which one begins a line near the prompt that has "…" while
	// the CLI works.
	Spinner string
	// Finished lists texts that the CLI shows at the end of a turn. If it is
	// empty, a turn is over as soon as the CLI is idle. Otherwise, a CLI that is
	// idle and shows none of them may still be working until it has been idle for
	// Quiet.
	Finished []string
	// WarmUp is how long a CLI without a Prompt takes to start. Zero means the
	// default of the engine, a negative value no time.
	WarmUp time.Duration
	// StartTimeout bounds the time to the first prompt, WarmUp included. Zero
	// means the default of the engine.
	StartTimeout time.Duration
	// Dialogs lists the prompts that the CLI may show when it starts.
	Dialogs []Dialog
	// Approvals are the approval requests of the CLI during a turn.
	Approvals []ApprovalDialog

	// Keys types messages as keys, in pieces, for CLIs that do not handle
	// pasted text correctly.
	Keys bool
	// Commands lists the characters that turn a message into a command when it
	// begins with one of them. Empty means the default of the engine.
	Commands string
	// SpaceLast types a space after a message, for CLIs that complete the last
	// word of their input on Enter.
	SpaceLast bool
	// EnterPause is the time between a message and Enter: CLIs treat an immediate
	// Enter as part of the pasted text. Zero means the default of the engine, a
	// negative value no pause.
	EnterPause time.Duration
	// EscapeFirst presses Escape between the message and Enter, for CLIs that
	// might show a list to choose from. Do not set it for a CLI that cancels
	// on Escape.
	EscapeFirst bool
	// Clear is the key that clears the input. Empty means the default of the
	// engine.
	Clear string
	// RetryBudget bounds the time in which a message is typed again, with growing
	// pauses, while the terminal does not show it. Zero means the default of the
	// engine, a negative value no retry.
	RetryBudget time.Duration

	// TypesWhileBusy reports that the CLI adds a message to the running turn.
	TypesWhileBusy bool
	// Interrupt lists the keys that end a turn. Nil means the default of the
	// engine.
	Interrupt []string
	// Quiet is how long a terminal must stay unchanged to count as idle if
	// nothing else indicates it. Zero means the default of the engine.
	Quiet time.Duration
	// Exit lists the keys that end the CLI. If it is empty, the terminal
	// hangs up.
	Exit []string
}

// A Dialog is a prompt that a CLI may show when it starts. It is answered without
// asking the user, so the answer must not permit anything.
type Dialog struct {
	Contains string   // what its text contains
	Keys     []string // the answer
}

// An ApprovalDialog is an approval request of a CLI, which the user must
// answer.
type ApprovalDialog struct {
	Contains        string // what its text contains, near its end
	Accept, Decline []string
}

// A Program is an interactive CLI that is about to start.
type Program struct {
	Runtime string // a token for texts
	// Path is the absolute path of the executable, Args its arguments and Env its
	// whole environment, to which a terminal adds its own variables.
	Path string
	Args []string
	Env  []string
	// Secrets are further secrets that are masked, as entries "NAME=value", besides
	// those of Env.
	Secrets []string
	// EmptyDirs names directories that the CLI leaves in its workdir. Those that were
	// absent before and are empty at the end are removed.
	EmptyDirs []string
	// Terminal describes how the CLI behaves.
	Terminal Terminal
	// SessionID returns the CLI's ID of the session, empty while unknown. It is nil
	// if the ID never becomes known.
	SessionID func() string
	// Ended is called once after the CLI has ended, before the session is done,
	// with the number of processes that could not be ended. It may be nil, and is
	// not called if nothing was started.
	Ended func(survived int)
}

// OpenTerminal starts a program in a terminal. The returned engine needs no
// transport: its Open waits until the program takes messages. ctx bounds only the
// start; the process continues after ctx ends. After an error, an *agent.Error, no
// process is left.
type OpenTerminal func(ctx context.Context, p Program, start Start) (Engine, Process, error)

var terminals struct {
	sync.Mutex
	open OpenTerminal
}

// RegisterTerminals registers the function that runs sessions in ModeTmux.
// Package session/tmux calls it when imported; the last call wins.
func RegisterTerminals(open OpenTerminal) {
	terminals.Lock()
	defer terminals.Unlock()
	terminals.open = open
}

// RegisteredTerminals returns the function registered last, or nil if there is
// none.
func RegisteredTerminals() OpenTerminal {
	terminals.Lock()
	defer terminals.Unlock()
	return terminals.open
}
