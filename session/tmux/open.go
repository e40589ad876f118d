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

// Options describe the agent to start.
type Options struct {
	engine.Program
	// Started is called once, before the agent starts, with the PID of the tmux
	// server, which runs until the session ends, and its socket. It may be nil.
	Started func(pid int, socket string)
}

func init() {
	engine.RegisterTerminals(func(ctx context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
		return Start(ctx, Options{Program: p}, start)
	})
}

// Start starts the first tmux in PATH for an agent in start.Workdir. It returns the
// engine and the process for session.Open, which needs no transport: the engine
// starts the agent and waits until it takes messages. To resume start.Resume, the
// caller puts it into the arguments of the agent. The process runs until it is
// stopped or the agent ends; ctx bounds the start only. Errors are of type
// [*agent.Error]; without tmux they are of kind agent.ErrNotInstalled.
func Start(ctx context.Context, o Options, start engine.Start) (engine.Engine, engine.Process, error) {
	if err := o.check(start); err != nil {
		return nil, nil, &agent.Error{Kind: agent.ErrUsage, Runtime: o.Runtime, Err: err}
	}
	search, _ := agent.LookupEnv(o.Env, "PATH")
	program, err := process.LookPath("tmux", search)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("tmux is needed to hold an agent in a terminal: %w", err)
	}
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
		o.Started(s.process.Pid(), s.Socket())
	}
	e := newEngine(o.Runtime, o.Terminal, s.mask, func(ctx context.Context) (pane, error) {
		p, err := s.newPane(ctx, start.Workdir, o.Path, o.Args)
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
