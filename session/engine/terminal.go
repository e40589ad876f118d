package engine

import (
	"context"
	"sync"
	"time"
)

// A Terminal says how an interactive CLI behaves in a terminal: how it is known to
// be ready, how it takes messages, and what it asks. Its keys are named as tmux
// names them: Enter, Escape, Down, C-c.
type Terminal struct {
	// Prompt is how the line begins in which the CLI takes messages. Empty means
	// that it is unknown: then the CLI is ready after WarmUp.
	Prompt string
	// Placeholder says that the CLI shows Prompt in an empty input alone, so that an
	// input without it holds a message.
	Placeholder bool
	// Ready are texts of which the CLI shows one near the prompt when it has started,
	// for CLIs that show the prompt before. Empty means that there are none.
	Ready []string
	// Busy are texts that the CLI shows near the prompt while it works.
	Busy []string
	// Finished are texts that the CLI shows at the end of a turn. Without any it
	// is over as soon as the CLI is idle; with some a CLI that is idle without one
	// of them may just be silent for less than Quiet.
	Finished []string
	// WarmUp is how long a CLI without a Prompt takes to start. Zero means the
	// default of the engine, less no time.
	WarmUp time.Duration
	// StartTimeout bounds the time to the first prompt, WarmUp included. Zero
	// means the default of the engine.
	StartTimeout time.Duration
	// Dialogs are what the CLI may ask when it starts.
	Dialogs []Dialog
	// Approvals are the approval requests of the CLI during a turn.
	Approvals []ApprovalDialog

	// Keys types messages as keys, in pieces, for CLIs that do not take pasted
	// text for what it is.
	Keys bool
	// Commands are the characters that make a command of a message that begins
	// with one. Empty means the default of the engine.
	Commands string
	// SpaceLast types a space after a message, for CLIs that complete the last
	// word of their input on Enter.
	SpaceLast bool
	// EnterPause is the time between a message and Enter: CLIs take an Enter that follows
	// at once for a part of what was pasted. Zero means the default of the engine,
	// less none.
	EnterPause time.Duration
	// EscapeFirst presses Escape between the message and Enter, for CLIs that
	// might show a list to choose from. Never for one that cancels on it.
	EscapeFirst bool
	// Clear is the key that clears the input. Empty means the default of the
	// engine.
	Clear string
	// RetryBudget bounds the time in which a message is typed again, with growing
	// pauses, that the terminal shows nothing of. Zero means the default of the
	// engine, less none.
	RetryBudget time.Duration

	// TypesWhileBusy says that the CLI takes a message into the turn that runs.
	TypesWhileBusy bool
	// Interrupt are the keys that end a turn. Nil means the default of the engine.
	Interrupt []string
	// Quiet is how long a terminal must not change to be taken for idle when
	// nothing else shows it. Zero means the default of the engine.
	Quiet time.Duration
	// Exit are the keys that end the CLI. Without any, the terminal hangs up.
	Exit []string
}

// A Dialog is what a CLI may ask when it starts. It is answered without asking the
// user, so the answer must permit nothing.
type Dialog struct {
	Contains string   // what its text contains
	Keys     []string // the answer
}

// An ApprovalDialog is an approval request, which the user has to answer.
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
	// EmptyDirs names directories that the CLI is known to leave in its workdir; those
	// that were absent before and are empty at the end are removed.
	EmptyDirs []string
	// Terminal says how the CLI behaves.
	Terminal Terminal
	// SessionID returns the CLI's ID of the session, empty while it is unknown. It is
	// nil if the ID is never known.
	SessionID func() string
	// Ended is called once nothing is left of the CLI, before the session is done,
	// with the number of processes that could not be ended. It may be nil, and is
	// not called where nothing was started.
	Ended func(survived int)
}

// OpenTerminal starts a program in a terminal. The engine that it returns needs no
// transport: its Open waits until the program takes messages. The process runs after
// ctx, which bounds the start alone. Nothing is left of it after an error, which is
// an [*agent.Error].
type OpenTerminal func(ctx context.Context, p Program, start Start) (Engine, Process, error)

var terminals struct {
	sync.Mutex
	open OpenTerminal
}

// RegisterTerminals makes open what ModeTmux is run by. Package session/tmux
// calls it when it is imported; the last call counts.
func RegisterTerminals(open OpenTerminal) {
	terminals.Lock()
	defer terminals.Unlock()
	terminals.open = open
}

// RegisteredTerminals returns what was registered last, nil where nothing was.
func RegisteredTerminals() OpenTerminal {
	terminals.Lock()
	defer terminals.Unlock()
	return terminals.open
}
