// Package tmux is the engine for agents that have nothing but a terminal: it
// starts an agent CLI in tmux, types what is said to it and reads what it shows.
//
// It is opt-in. It runs the program tmux, 3.2 or later, so no package imports it
// but the program bus-agent. Importing it registers it: package runner then starts
// sessions in session.ModeTmux. An engine that speaks a protocol is better in
// every respect but one: any interactive CLI can be held in a terminal.
//
//	start := engine.Start{Workdir: dir}
//	e, p, err := tmux.Start(ctx, tmux.Options{Program: engine.Program{
//		Runtime: "mine", Path: "/usr/bin/mine", Env: os.Environ(),
//		Terminal: engine.Terminal{Prompt: "> ", Busy: []string{"esc to interrupt"}},
//	}}, start)
//	...
//	s, err := session.Open(ctx, "mine", e, p, engine.Transport{}, start, session.Options{})
//
// # The server
//
// Each session has a tmux server of its own, on a socket in a folder that only
// the user can open; the user's own server and configuration files are not
// touched. There is no shell between tmux and the agent. The server is the process
// of the session and the agent its descendant, with the tag of the run in the
// environment: what ends the server ends them, and what is left by a program that
// was killed is found like all stale processes of runs. A person may attach:
// Options.Started tells the socket, and `tmux -S SOCKET attach` does it.
//
// # Readiness
//
// With a Terminal.Prompt, the agent is idle when a line near the end of what it
// shows is the prompt or begins with it and nothing there says that it is busy; it
// is ready when it is idle for two seconds in which nothing changes, and one of
// Terminal.Ready is shown where there are any. Without a prompt it is ready after
// Terminal.WarmUp. Questions that a CLI asks when it starts are answered with the
// keys of Terminal.Dialogs, never with others.
//
// # Delivery
//
// A message loses its control characters, tabs become four spaces, and the line
// "Message:" goes before one that the CLI would take for a command. It is pasted as one
// piece, or typed key by key. When the terminal shows nothing of it the input is
// cleared and it is typed again, until Terminal.RetryBudget is used up. Enter
// follows once the terminal is still, and Terminal.EnterPause later, and again, three times at most, while
// nothing changes. A pane that somebody scrolls is brought back first. An error
// says that the message was not submitted, as far as can be seen; where it could
// not be cleared away, it is still in the agent's input.
//
// # Turns
//
// A turn is over when the agent was seen busy, is idle, and two more looks find
// nothing changed; where it was not seen busy, and where none of Terminal.Finished
// is in what it shows, when nothing has changed for Terminal.Quiet. So an agent that shows no sign of work and pauses that long
// seems to be done.
//
// The text of a turn is what the terminal gained: best effort. It can hold the
// message, the marks and frames that the CLI draws, and of one that uses the
// alternate screen only what was on it at the end. Lines that are wider than the
// terminal and that the CLI breaks itself stay broken.
//
// A text of Terminal.Approvals in the last lines of the screen during a turn is an
// approval request of the session. Its reason is what the terminal has gained since
// it showed none, 20 lines at least and 400 at most. Accept, also for the session,
// presses the keys for yes; decline and cancel press those for no, which end the turn
// of many CLIs. An answer to a request that the screen no longer shows as it was
// reported is engine.ErrTooLate. While a request is shown no message is typed and no
// Enter pressed, so only an answer or a person who is attached answers it. Other
// requests are text. The interrupt keys are pressed once: a second time ends many CLIs.
package tmux
