// Package tmux is the engine for agents that have only a terminal interface: it starts
// an agent CLI in tmux, types messages, and reads the screen.
//
// It runs the program tmux, version 3.2 or later, and is therefore opt-in: import it
// to register it, and package runner starts sessions in session.ModeTmux. An engine
// that speaks a protocol is better in all other respects, but this one works with any
// interactive CLI.
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
// Each session has a separate tmux server, on a socket in a folder that only the user
// can open. The user's own server and configuration files are not used, and no shell
// runs between tmux and the agent. The server is the process of the session, and the
// agent descends from it and has the tag of the run in its environment: both end
// together, and if the program is killed they are found like all stale processes. A
// user may attach with `tmux -S SOCKET attach`; Options.Started reports the socket.
//
// # Readiness
//
// With a [Terminal.Prompt], the agent is idle when one of the last lines is the
// prompt or begins with it, and none of them shows that it is busy. It is ready when
// it has been idle for two seconds without a change and shows one of Terminal.Ready,
// if there are any. Without a prompt it is ready after Terminal.WarmUp. Dialogs at
// the start are answered with the keys of Terminal.Dialogs; others are not answered.
//
// # Delivery
//
// Control characters are removed from a message, a tab becomes four spaces, and the
// line "Message:" precedes a message that the CLI would take for a command. The message
// is pasted in one piece or typed key by key. When the screen does not change, the
// input is cleared and the message typed again, until Terminal.RetryBudget is used up.
// Once the screen is still, Enter follows after Terminal.EnterPause, and again while it
// has no effect. An agent that does not read what was typed has half a minute; nothing
// is typed again before. If a user scrolls the pane, scrolling ends first. With an error the
// message was not submitted, as far as the screen shows; if it could not be cleared it
// is still in the agent's input.
//
// # Turns
//
// A turn is over when the agent was busy, is idle, and two more checks find no
// change. If the agent was never seen busy, or none of Terminal.Finished is in its
// text, the turn is over after Terminal.Quiet without a change. So a turn ends too
// early if an agent shows no sign of work and pauses that long.
//
// The text of a turn is what was added to the terminal, on a best-effort basis. It
// can contain the message and the decoration of the CLI. A CLI that uses the
// alternate screen leaves only its last screen. Lines that the CLI breaks stay
// broken.
//
// # Approval requests
//
// A text of Terminal.Approvals in the last lines of the screen during a turn is an
// approval request of the session. Its reason is what was added to the terminal since
// it last showed no request, at least 20 and at most 400 lines. Accept and
// AcceptForSession press the keys for yes. Decline and Cancel press the keys for no,
// which in many CLIs end the turn. An answer to a request that the screen no longer
// shows as it was reported is engine.ErrTooLate. While a request is shown no message
// is typed and Enter is not pressed, so only a call of Answer or an attached user can
// answer it. Other requests appear as text. The interrupt keys are pressed once,
// because a second time ends many CLIs.
package tmux
