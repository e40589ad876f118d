package verify

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// oneTurn makes each run a session with one turn, for runtimes that have nothing else. Its
// approval requests are declined, as a run declines what it would have to ask for. Some
// agents end the turn then; it is continued by another one.
type oneTurn struct{ runner *runner.Runner }

// stopped reports whether a turn ended like one that ends with a tool call that was
// declined, and not with an answer.
func stopped(result agent.Result, err error) bool {
	return errors.Is(err, agent.ErrCanceled) || err == nil && result.Text == ""
}

// Run is like runner.Runner.Run. The timeout of the request bounds the turn.
func (o oneTurn) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	message := session.Message{Text: req.Prompt, Attachments: req.Attachments, TurnTimeout: req.Timeout}
	req.Prompt, req.Attachments, req.Timeout = "", nil, runLimit
	var mu sync.Mutex
	var warnings []string
	o.runner.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, text)
	}
	var declined atomic.Int64
	s, err := o.runner.StartSession(ctx, req, session.Options{
		Started: out.Started,
		Events:  out.Events,
		Approve: func(context.Context, session.Approval) session.Decision {
			declined.Add(1)
			return session.Decline
		},
	})
	if err != nil {
		return agent.Result{ExitCode: -1}, err
	}
	turn := s.Send(message)
	for before := int64(0); ; before = declined.Load() {
		result, err := turn.Wait(ctx)
		if ctx.Err() != nil || !stopped(result, err) || declined.Load() == before {
			break
		}
		message.Text, message.Attachments = "continue", nil
		turn = s.Send(message)
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
