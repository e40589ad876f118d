package verify

import (
	"cmp"
	"context"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// oneTurn makes each run a session with one turn, for runtimes that have nothing else. Its
// approval requests are declined, as a run declines what it would have to ask for.
type oneTurn struct{ runner *runner.Runner }

// Run is like runner.Runner.Run. The timeout of the request bounds the turn.
func (o oneTurn) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	message := session.Message{Text: req.Prompt, TurnTimeout: req.Timeout}
	req.Prompt, req.Timeout = "", runLimit
	var mu sync.Mutex
	var warnings []string
	o.runner.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, text)
	}
	s, err := o.runner.StartSession(ctx, req, session.Options{
		Started: out.Started,
		Events:  out.Events,
		Approve: func(context.Context, session.Approval) session.Decision { return session.Decline },
	})
	if err != nil {
		return agent.Result{ExitCode: -1}, err
	}
	turn := s.Send(message)
	select {
	case <-turn.Done():
	case <-ctx.Done():
	}
	s.Stop(context.WithoutCancel(ctx), "the run is over")
	result, err := turn.Wait(context.WithoutCancel(ctx)) // it is over
	info := s.Info()
	result.SessionID, result.Model = cmp.Or(result.SessionID, info.SessionID), cmp.Or(result.Model, info.Model)
	mu.Lock()
	defer mu.Unlock()
	result.Warnings = warnings
	return result, err
}
