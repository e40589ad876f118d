package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/runner"
)

// A pane is a terminal in which an agent runs.
type pane interface {
	// look returns what it shows.
	look(ctx context.Context) (screen, error)
	// since returns the lines from the one that was at the top of the screen when
	// history lines had left it. now is the current screen.
	since(ctx context.Context, history int, now screen) ([]string, error)
	// paste pastes text in one piece.
	paste(ctx context.Context, text string) error
	// write types text of at most maxChunk bytes.
	write(ctx context.Context, text string) error
	// press presses a key.
	press(ctx context.Context, key string) error
	// unread reports whether the agent has not read all that was typed, as far as is known.
	unread() bool
	// wait waits until the agent and everything it started have ended. It returns
	// why, nil when the agent was stopped or exited with status 0.
	wait() error
	// hangUp closes the terminal.
	hangUp()
}

// tmuxPane is a pane of a server.
type tmuxPane struct {
	server *server
	id     string
	path   string        // of the terminal
	died   chan struct{} // receives a token when look finds that the agent has ended
}

const (
	// The size of the terminal in characters. A wide one breaks few lines.
	width, height = "200", "50"
	// buffer is the tmux buffer that holds a message to paste.
	buffer = "message"
	// endPoll is the time between two checks whether the agent has ended.
	endPoll = time.Second
	// statusLimit bounds the wait for the agent's exit status.
	statusLimit = 2 * time.Second
)

// newPane starts path with args in dir in a new pane, which is the only one.
func (s *server) newPane(ctx context.Context, dir, path string, args []string) (*tmuxPane, error) {
	if len(args) == 0 {
		// tmux passes a command of one word to a shell.
		args, path = []string{path}, "/usr/bin/env"
	}
	set := func(option, value string) []string { return []string{"set-option", "-gq", option, value} }
	shown, err := s.await(ctx, dir,
		set("history-limit", "100000"),
		set("remain-on-exit", "on"), // to see how it ended
		set("remain-on-exit-format", ""),
		set("status", "off"),
		set("set-clipboard", "off"),
		set("allow-passthrough", "off"),
		set("default-terminal", "screen-256color"),
		append([]string{"new-session", "-d", "-P", "-F", "#{pane_id} #{pane_tty}",
			"-x", width, "-y", height, "--", path}, args...),
		// A user who attaches does not change the size. tmux 3.3 crashes when this
		// is set before a session exists.
		set("window-size", "manual"),
	)
	if err != nil {
		return nil, err
	}
	id, path, _ := strings.Cut(strings.TrimSpace(shown), " ")
	return &tmuxPane{s, id, path, make(chan struct{}, 1)}, nil
}

func (p *tmuxPane) look(ctx context.Context) (screen, error) {
	out, err := p.server.ask(ctx, "",
		[]string{"display-message", "-p", "-t", p.id, screenFormat},
		[]string{"capture-pane", "-p", "-J", "-t", p.id})
	if err != nil {
		return screen{}, err
	}
	s, err := parseScreen(out)
	if s.dead {
		select {
		case p.died <- struct{}{}:
		default:
		}
	}
	return s, err
}

func (p *tmuxPane) since(ctx context.Context, history int, now screen) ([]string, error) {
	from := strconv.Itoa(-max(0, now.history-history))
	out, err := p.server.ask(ctx, "", []string{"capture-pane", "-p", "-J", "-t", p.id, "-S", from})
	if err != nil {
		return nil, err
	}
	return splitLines(out), nil
}

// leaveMode ends copy mode, which a user who scrolls has entered and in which keys
// go to tmux. It goes in one call with the commands that follow, so that the user
// cannot enter it again in between.
func (p *tmuxPane) leaveMode() []string { return []string{"copy-mode", "-q", "-t", p.id} }

// paste keeps line breaks (-r) and marks the text as pasted for a CLI that asked for
// bracketed paste (-p).
func (p *tmuxPane) paste(ctx context.Context, text string) error {
	_, err := p.server.ask(ctx, text, []string{"load-buffer", "-b", buffer, "-"}, p.leaveMode(),
		[]string{"paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", p.id})
	return err
}

func (p *tmuxPane) write(ctx context.Context, text string) error {
	_, err := p.server.ask(ctx, "", p.leaveMode(), []string{"send-keys", "-l", "-t", p.id, "--", text})
	return err
}

func (p *tmuxPane) press(ctx context.Context, key string) error {
	_, err := p.server.ask(ctx, "", p.leaveMode(), []string{"send-keys", "-t", p.id, "--", key})
	return err
}

// unread asks the terminal, whose queue holds what no program has read. It opens the
// terminal for a moment only, because an open terminal outlives its program.
func (p *tmuxPane) unread() bool {
	fd, err := unix.Open(p.path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0 && polled[0].Revents&unix.POLLIN != 0
}

func (p *tmuxPane) hangUp() { p.server.Stop() }

// wait polls: tmux does not always run the hook for the end of a program.
func (p *tmuxPane) wait() error {
	ctx := context.Background() // the server ends the calls
	for {
		select {
		case <-p.died:
		case <-time.After(endPoll):
		case <-p.server.Done():
			return p.server.ended()
		}
		last, err := p.look(ctx)
		if errors.Is(err, errNoServer) {
			return p.server.lost()
		}
		if err == nil && last.dead {
			last = p.final(ctx, last)
			p.server.Stop()
			<-p.server.Done()
			if last.status == 0 {
				return nil
			}
			return p.server.exitError(last)
		}
	}
}

// final waits until tmux knows how the agent ended. The end of its output can come
// first, and tmux 3.3 can miss SIGCHLD until the next one.
func (p *tmuxPane) final(ctx context.Context, s screen) screen {
	for giveUp := time.Now().Add(statusLimit); s.dead && s.status < 0 && s.signal == "" && time.Now().Before(giveUp); {
		_ = unix.Kill(p.server.process.Pid(), unix.SIGCHLD) // fails when the server has ended too
		time.Sleep(settlePoll)
		if next, err := p.look(ctx); err == nil {
			s = next
		}
	}
	return s
}

// shownLines is how much of a screen is in an error.
const shownLines = 20

// exitError returns how the agent ended.
func (s *server) exitError(last screen) error {
	return &agent.ExitError{Code: last.status, Signal: signalName(last.signal), Stderr: s.mask.Text(last.tail(shownLines))}
}

// signalName returns the name of a signal, which tmux reports by its number or by its
// name without SIG.
func signalName(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		return unix.SignalName(unix.Signal(n))
	}
	if s != "" {
		return "SIG" + strings.TrimPrefix(s, "SIG")
	}
	return ""
}

// screenError adds what the terminal shows to an error.
func screenError(mask *runner.Masker, err error, s screen) error {
	if len(s.lines) == 0 {
		return fmt.Errorf("%w; the terminal is empty", err)
	}
	return fmt.Errorf("%w; the terminal shows:\n%s", err, mask.Text(s.tail(shownLines)))
}
