package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
)

// A pane is a terminal with an agent in it, as the engine needs it.
type pane interface {
	// look returns what it shows.
	look(ctx context.Context) (screen, error)
	// since returns all lines from the one that was at the top when history
	// lines had left the screen. now is the screen of now.
	since(ctx context.Context, history int, now screen) ([]string, error)
	// paste puts text in as one piece.
	paste(ctx context.Context, text string) error
	// write types text, of at most maxChunk bytes.
	write(ctx context.Context, text string) error
	// press presses a key.
	press(ctx context.Context, key string) error
	// wait waits for the end of the agent, after which nothing is left of it,
	// and returns why it ended, nil when it was stopped or left in order.
	wait() error
	// hangUp takes the terminal away.
	hangUp()
}

// tmuxPane is a pane of a server.
type tmuxPane struct {
	server *server
	id     string
	died   chan struct{} // gets a token when the agent is seen to have ended
}

const (
	buffer = "message" // holds what is pasted
	// endPoll is how often an agent is looked at that nothing else looks at.
	endPoll = time.Second
	// statusLimit bounds the time until the status of an agent's exit is known.
	statusLimit = 2 * time.Second
)

// newPane starts path with args in dir in a new pane, which is the only one.
func (s *server) newPane(ctx context.Context, dir, path string, args []string, width, height int) (*tmuxPane, error) {
	if len(args) == 0 {
		// tmux hands a command of one word to a shell.
		args, path = []string{path}, "/usr/bin/env"
	}
	set := func(option, value string) []string { return []string{"set-option", "-gq", option, value} }
	id, err := s.await(ctx, dir,
		set("history-limit", "100000"),
		set("remain-on-exit", "on"), // to see how it ended
		set("remain-on-exit-format", ""),
		set("status", "off"),
		set("set-clipboard", "off"),
		set("allow-passthrough", "off"),
		set("default-terminal", "screen-256color"),
		append([]string{"new-session", "-d", "-P", "-F", "#{pane_id}",
			"-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "--", path}, args...),
		// Whoever attaches does not change the size. tmux 3.3 dies of it before
		// there is a session.
		set("window-size", "manual"),
	)
	if err != nil {
		return nil, err
	}
	return &tmuxPane{s, strings.TrimSpace(id), make(chan struct{}, 1)}, nil
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

// leaveMode ends the mode in which keys go to tmux, in which somebody who scrolls
// has put the pane. It goes before other commands in one call, so that nobody
// comes between.
func (p *tmuxPane) leaveMode() []string { return []string{"copy-mode", "-q", "-t", p.id} }

// paste keeps line breaks what they are: -r, and -p for a CLI that tells what is
// pasted from what is typed.
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

func (p *tmuxPane) hangUp() { p.server.Stop() }

// wait looks once in a while: the hook by which tmux tells of the end of a program
// is not always run.
func (p *tmuxPane) wait() error {
	ctx := context.Background() // the calls end with the server
	for {
		select {
		case <-p.died:
		case <-time.After(endPoll):
		case <-p.server.Done():
			return p.server.ended()
		}
		last, err := p.look(ctx)
		if errors.Is(err, errNoServer) {
			return p.server.ended()
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
// first, and tmux 3.3 at times misses the signal that tells of the rest until the
// next one.
func (p *tmuxPane) final(ctx context.Context, s screen) screen {
	for giveUp := time.Now().Add(statusLimit); s.dead && s.status < 0 && s.signal == "" && time.Now().Before(giveUp); {
		_ = unix.Kill(p.server.process.Pid(), unix.SIGCHLD) // it may have ended as well
		time.Sleep(settlePoll)
		if next, err := p.look(ctx); err == nil {
			s = next
		}
	}
	return s
}

// shownLines is how much of a screen is in an error.
const shownLines = 20

// exitError says how the agent ended.
func (s *server) exitError(last screen) error {
	return &agent.ExitError{Code: last.status, Signal: signalName(last.signal), Stderr: maskSecrets(s.env, last.tail(shownLines))}
}

// signalName returns the name of a signal, of which tmux tells the number or the
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
func screenError(env []string, err error, s screen) error {
	if len(s.lines) == 0 {
		return fmt.Errorf("%w; the terminal is empty", err)
	}
	return fmt.Errorf("%w; the terminal shows:\n%s", err, maskSecrets(env, s.tail(shownLines)))
}
