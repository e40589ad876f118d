package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// terminals returns what opens terminals, or nil.
func (r *Runner) terminals() engine.OpenTerminal {
	if r.OpenTerminal != nil {
		return r.OpenTerminal
	}
	return engine.RegisteredTerminals()
}

// openTerminal starts the CLI. It cleans up when the CLI is gone or was not started.
func (p *prepared) openTerminal(ctx context.Context, open engine.OpenTerminal, options session.Options) (*session.Session, error) {
	record := &sessionRecording{prepared: p, begun: time.Now()}
	record.watch(&options)
	ended := sync.OnceFunc(func() { p.close(context.Background()) })
	closed := options.Closed
	options.Closed = func(err error) { // the CLI is gone then
		record.end(p.terminalInfo(), terminalCode(err), "", err)
		if closed != nil {
			closed(err)
		}
	}
	p.announce(ctx, record)
	opening, cancel := context.WithTimeout(ctx, p.req.Timeout)
	defer cancel()
	p.began.Store(true) // it can end before open returns
	start := p.sessionStart(options)
	e, held, err := open(opening, engine.Program{
		Runtime:   p.req.Runtime,
		Path:      p.selection.Path,
		Args:      p.command.Args,
		Env:       p.maskedEnviron(),
		Secrets:   agent.MCPSecrets(p.inv.MCPServers),
		EmptyDirs: p.selection.Runtime.EmptyDirs,
		Terminal:  p.selection.Runtime.Terminal.Terminal,
		SessionID: p.setup.SessionID,
		Ended: func(survived int) {
			if survived > 0 {
				p.warn(fmt.Sprintf("%d processes of the session could not be ended", survived))
			}
			ended()
		},
	}, start)
	var s *session.Session
	if err == nil {
		s, err = session.Open(opening, p.req.Runtime, e, held, engine.Transport{}, start, options)
	}
	if err != nil {
		p.began.Store(false)
		ended()
		err = p.wrap(agent.ErrAgent, err)
		record.end(p.terminalInfo(), -1, "", err)
		return nil, err
	}
	record.setStop(func() { go s.Stop(context.Background(), "it cannot be recorded") })
	return s, nil
}

// terminalInfo returns the info of a CLI in a terminal, which reports none itself.
func (p *prepared) terminalInfo() engine.Info {
	if id := p.setup.SessionID; id != nil {
		return engine.Info{SessionID: id()}
	}
	return engine.Info{SessionID: p.inv.Resume}
}

// terminalCode is the exit code of a CLI in a terminal, as far as it is known.
func terminalCode(err error) int {
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		return exit.Code
	}
	if err != nil {
		return -1
	}
	return 0
}
