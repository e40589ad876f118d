package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session/engine"
)

// Defaults of [Options]. A wide terminal breaks few lines.
const (
	DefaultWidth  = 200
	DefaultHeight = 50
)

// Options say what agent a session is with.
type Options struct {
	engine.Program

	// Width and Height are the size of the terminal in characters. Zero means
	// the defaults.
	Width, Height int
	// Tmux is the absolute path of tmux. Empty means the first in PATH.
	Tmux string
	// Started is called once, when the agent is about to start, with the PID of
	// the tmux server, which lives as long as the session, and its socket.
	Started func(pid int, socket string)
}

func init() {
	engine.RegisterTerminals(func(ctx context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
		return Start(ctx, Options{Program: p}, start)
	})
}

// Start starts tmux for an agent in start.Workdir, and returns the engine and the
// process for session.Open, which needs no transport: the engine starts the agent
// and waits until it takes messages. How an agent resumes start.Resume is a matter of
// its arguments. It runs until [engine.Process] is stopped or its own end; ctx bounds the
// start alone. Errors are of type [*agent.Error]; without tmux they are of kind
// agent.ErrNotInstalled.
func Start(ctx context.Context, o Options, start engine.Start) (engine.Engine, engine.Process, error) {
	if err := o.check(start); err != nil {
		return nil, nil, &agent.Error{Kind: agent.ErrUsage, Runtime: o.Runtime, Err: err}
	}
	program, err := o.tmux()
	if err != nil {
		return nil, nil, &agent.Error{Kind: agent.ErrNotInstalled, Runtime: o.Runtime, Err: err}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, nil, &agent.Error{Kind: agent.ErrCanceled, Runtime: o.Runtime, Err: err}
	}
	s, err := startServer(ctx, program, start.Workdir, &o.Program)
	if err != nil {
		return nil, nil, &agent.Error{Kind: agent.ErrAgent, Runtime: o.Runtime, Err: err}
	}
	if o.Started != nil {
		o.Started(s.process.Pid(), s.socket())
	}
	e := newEngine(o.Runtime, o.Terminal, s.env, func(ctx context.Context) (pane, error) {
		p, err := s.newPane(ctx, start.Workdir, o.Path, o.Args, orDefault(o.Width, DefaultWidth), orDefault(o.Height, DefaultHeight))
		if err != nil {
			return nil, err // no pane in an interface
		}
		return p, nil
	})
	if o.SessionID != nil {
		e.sessionID = o.SessionID
	}
	return e, s, nil
}

func orDefault(n, byDefault int) int {
	if n > 0 {
		return n
	}
	return byDefault
}

func (o *Options) check(start engine.Start) error {
	switch {
	case !filepath.IsAbs(o.Path):
		return fmt.Errorf("the path of the executable, %q, is not absolute", o.Path)
	case !filepath.IsAbs(start.Workdir):
		return fmt.Errorf("the workdir, %q, is not absolute", start.Workdir)
	case len(o.Args) == 0 && strings.Contains(o.Path, "="):
		return fmt.Errorf("%s cannot be started without arguments: its path contains =", o.Path)
	}
	info, err := os.Stat(o.Path)
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0) {
		err = fmt.Errorf("%s: %w", o.Path, fs.ErrPermission)
	}
	return err
}

// tmux returns the absolute path of tmux.
func (o *Options) tmux() (string, error) {
	name := o.Tmux
	if name == "" {
		name = "tmux"
	}
	search, _ := agent.LookupEnv(o.Env, "PATH")
	path, err := process.LookPath(name, search)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("tmux is needed to hold an agent in a terminal: %w", err)
	}
	return path, err
}
