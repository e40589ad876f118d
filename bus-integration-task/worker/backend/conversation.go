package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// A conversation is one session with one runtime.
type conversation struct {
	attempt *attempt
	runtime registry.Runtime
	token   string
	session *session.Session   // once it is open
	first   chan *session.Turn // the turn of the prompt, once it is known
	begun   sync.Once          // the first turn is known

	// Of work, until the attempt is done.
	result      agent.Result
	crashed     bool
	undelivered []string

	// Guarded by attempt.mu.
	takes   bool            // messages
	saying  int             // calls that may add a turn
	turns   []*session.Turn // all that were seen
	waiting []message       // turns that are not awaited yet

	evidence
}

// A message is one of Say that became a turn.
type message struct {
	turn *session.Turn
	text string
}

func newConversation(r *attempt, rt registry.Runtime, token string) *conversation {
	return &conversation{
		attempt: r, runtime: rt, token: token, first: make(chan *session.Turn, 1),
		evidence: newEvidence(r.report, rt.ReadingTools),
	}
}

// work opens the session, and waits for the end of its turns until no message waits. It
// returns the error of the last turn, or why the session cannot be opened.
func (c *conversation) work(ctx context.Context, req agent.Request) error {
	if err := c.open(ctx, req); err != nil {
		return err
	}
	c.attempt.mu.Lock()
	c.attempt.talk = c
	c.attempt.mu.Unlock()
	if ctx.Err() != nil { // no other code has seen it
		c.stop(context.WithoutCancel(ctx), context.Cause(ctx).Error())
	}
	select {
	case t := <-c.first:
		return c.follow(ctx, t)
	case <-c.session.Ended():
		c.crashed = ctx.Err() == nil
		return cmp.Or(c.session.Err(), session.ErrStopped)
	}
}

// open starts the agent with the prompt.
func (c *conversation) open(ctx context.Context, req agent.Request) error {
	r := c.attempt
	c.info.Runtime = c.token
	env, err := c.stateEnv()
	if err != nil {
		return err
	}
	req.Env = append(env, req.Env...)
	run := r.backend.Runner
	run.Environ = r.environ
	if run.Recorder != nil {
		run.Recorder = maskingRecorder{run.Recorder, r.given.Hidden}
	}
	warn := run.Warn
	run.Warn = func(line string) {
		r.report.progress("warning: " + line)
		if warn != nil {
			warn(line)
		}
	}
	r.report.notice("starting " + label(c.runtime) + " task backend")
	s, err := run.StartSession(ctx, req, c.options())
	if err != nil {
		_, refused := errors.AsType[*jsonrpc.Error](err)
		c.crashed = errors.Is(err, agent.ErrAgent) && !refused
		return err
	}
	c.session = s
	info := s.Info()
	c.opened(cmp.Or(info.SessionID, req.Resume), info.Model)
	return nil
}

// notResumed reports whether the session to resume could not be opened, or its agent ended
// before it did anything, which is how some CLIs refuse an unknown session.
func (c *conversation) notResumed(err error) bool {
	for _, other := range []error{agent.ErrQuota, agent.ErrAuthentication, agent.ErrNotInstalled, agent.ErrTimeout, agent.ErrCanceled} {
		if err == nil || errors.Is(err, other) {
			return false
		}
	}
	if c.session == nil {
		return true
	}
	c.mu.Lock()
	worked := c.worked
	c.mu.Unlock()
	select {
	case <-c.session.Ended():
		return !worked
	default:
		return false
	}
}

// options connects the session with the attempt.
func (c *conversation) options() session.Options {
	r := c.attempt
	o := session.Options{
		Started:         func(s agent.Start) { c.started(s.RunID) },
		Events:          c.event,
		ApprovalTimeout: r.given.ApprovalTimeout,
		Delivered: func(t *session.Turn, _ session.Message) {
			c.begun.Do(func() {
				r.report.notice(label(c.runtime) + " turn started")
				c.first <- t
			})
		},
		Over:    func(t *session.Turn) { c.begun.Do(func() { c.first <- t }) }, // it was not delivered
		Approve: c.approve,
		Ask:     c.decline,
	}
	if r.given.ApprovalPolicy == ApprovalNever {
		o.ApprovalTimeout, o.Approve = -1, nil
	}
	return o
}

// follow waits for the end of t and of the turns that messages add.
func (c *conversation) follow(ctx context.Context, t *session.Turn) error {
	c.attempt.mu.Lock()
	c.turns = append(c.turns, t)
	said := slices.Clone(c.attempt.said)
	c.attempt.mu.Unlock()
	for _, text := range said { // to the runtime before
		c.say(ctx, text)
	}
	c.attempt.mu.Lock()
	c.takes = true
	c.attempt.change()
	c.attempt.mu.Unlock()
	now := message{turn: t}
	var err error
	for {
		result, turnErr := now.turn.Wait(context.WithoutCancel(ctx)) // Stop ends it
		c.crashed = c.crashed || result.ExitCode < 0 && errors.Is(turnErr, agent.ErrAgent)
		if now.text != "" && errors.Is(turnErr, session.ErrNotDelivered) {
			c.undelivered = append(c.undelivered, now.text)
			err = cmp.Or(err, c.lost(ctx, turnErr))
		} else {
			c.result, err = result, turnErr
		}
		next, ok := c.next()
		if !ok {
			return err
		}
		now = next
	}
}

// lost returns the error of an attempt that had gone well when a message was not
// delivered because of err.
func (c *conversation) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, session.ErrStopped) {
		return err
	}
	c.crashed = true // it was not stopped
	return &agent.Error{Kind: agent.ErrAgent, Runtime: c.token, Err: errors.New("the agent ended before it got a message")}
}

// next returns the next message that became a turn. Without one it ends the taking of
// messages.
func (c *conversation) next() (message, bool) {
	r := c.attempt
	for {
		r.mu.Lock()
		if len(c.waiting) > 0 {
			next := c.waiting[0]
			c.waiting = c.waiting[1:]
			r.mu.Unlock()
			return next, true
		}
		changed := r.changed
		if c.saying == 0 {
			c.takes = false
			r.mu.Unlock()
			return message{}, false
		}
		r.mu.Unlock()
		<-changed
	}
}

// say delivers a message.
func (c *conversation) say(ctx context.Context, text string) Delivery {
	r := c.attempt
	t := c.session.Steer(ctx, session.Message{Text: text})
	r.mu.Lock()
	steered := slices.Contains(c.turns, t)
	if !steered {
		c.turns = append(c.turns, t)
		c.waiting = append(c.waiting, message{t, text})
	}
	r.mu.Unlock()
	if !steered {
		r.report.notice("live guidance queued as the next turn of the " + label(c.runtime) + " session")
		return NextTurn
	}
	r.report.notice("live guidance delivered to " + label(c.runtime) + " session")
	return Steered
}

// stop ends the session, and a running turn first, so that the agent can store it.
func (c *conversation) stop(ctx context.Context, reason string) {
	if c.session == nil {
		return
	}
	if _, open := c.session.Turns(); open > 0 {
		grace, cancel := context.WithTimeout(ctx, InterruptGrace)
		defer cancel()
		c.attempt.mu.Lock()
		turns := slices.Clone(c.turns)
		c.attempt.mu.Unlock()
		if c.session.Interrupt(grace) == nil && len(turns) > 0 {
			awaitOne(grace, c.session, turns)
		}
	}
	c.session.Stop(ctx, reason)
}

// awaitOne waits until the running one of turns is over.
func awaitOne(ctx context.Context, s *session.Session, turns []*session.Turn) {
	for _, t := range turns {
		select {
		case <-t.Delivered():
		default:
			continue
		}
		select {
		case <-t.Done():
		case <-s.Ended():
		case <-ctx.Done():
		}
	}
}

// decline reports questions of the agent and declines them: no user answers here.
func (c *conversation) decline(_ context.Context, q session.QuestionRequest) [][]string {
	for _, question := range q.Questions {
		c.attempt.report.notice(fmt.Sprintf("the agent asked %q; declined, because no user answers during a task", line(c.attempt.report.mask.Text(question.Text), maxSummary)))
	}
	return [][]string{}
}

// approve reports an approval request and waits until it is closed.
func (c *conversation) approve(ctx context.Context, a session.Approval) session.Decision {
	r := c.attempt
	r.mu.Lock()
	r.asked++
	asked := describe(r.asked, a, r.report.mask)
	r.pending[asked.ID] = pendingApproval{c, a.ID}
	r.mu.Unlock()
	r.report.call(func() {
		if f := r.report.listener.ApprovalRequested; f != nil {
			f(asked)
		}
	})
	<-ctx.Done()
	r.mu.Lock()
	_, unanswered := r.pending[asked.ID]
	delete(r.pending, asked.ID)
	r.mu.Unlock()
	if unanswered {
		r.report.call(func() {
			if f := r.report.listener.ApprovalClosed; f != nil {
				f(asked.ID)
			}
		})
	}
	return ""
}
