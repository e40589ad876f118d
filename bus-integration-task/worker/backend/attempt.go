package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

// An attempt is a Running of a Session.
type attempt struct {
	backend *Session
	given   Attempt
	environ []string
	report  *reporter
	begun   time.Time
	ctx     context.Context // until it is stopped
	cancel  context.CancelCauseFunc
	unwatch func() bool // of the context of Start
	done    chan struct{}

	stopping sync.Once

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change of what follows
	talk     *conversation // nil while none is open
	over     bool          // no message is taken any more
	timedOut bool
	canceled bool // by Stop, before it was done
	said     []string
	asked    int
	pending  map[string]pendingApproval
	tried    []agent.Attempt
	outcome  Outcome // once done is closed
}

// run talks with one runtime after the other until one settles the attempt.
func (r *attempt) run() {
	defer close(r.done)
	limit := r.limit()
	var c *conversation
	var err error
	previous := ""
	r.checkThread()
	tokens := r.ready()
	changed := r.given.ThreadID != "" && !r.hasThread(tokens[0]) // by the session that is left
	for len(tokens) > 0 {
		token := tokens[0]
		rt, _ := r.backend.lookup(token) // Check has found it
		c = newConversation(r, rt, token)
		req := r.request(c, cmp.Or(previous, r.given.Labels.Previous))
		if changed {
			req.Prompt = takenOver + req.Prompt
		}
		err = c.work(r.ctx, req)
		r.rest(token, err)
		switch {
		case r.ctx.Err() == nil && req.Resume != "" && c.notResumed(err):
			r.report.notice(fmt.Sprintf("the session of %s cannot be resumed: %v; a new one begins", label(rt), err))
			r.given.ThreadID = ""
		case len(tokens) > 1 && r.fallsBack(err):
			changed = changed || c.mayHaveChanged() || req.Resume != ""
			tokens = tokens[1:]
			r.report.notice(fmt.Sprintf("%v; trying %s", err, tokens[0]))
		default:
			tokens = nil
			continue
		}
		c.stop(r.ctx, "another session takes over")
		previous = cmp.Or(c.info.RunID, previous)
		r.mu.Lock()
		r.tried = append(r.tried, agent.Attempt{
			Runtime: token, Model: c.info.Model, Kind: agent.KindOf(err), Error: err.Error(), RunID: c.info.RunID, Usage: c.usage,
		})
		r.mu.Unlock()
	}
	limit()
	r.settle(c, err)
	r.report.flush()
}

// takenOver precedes the prompt of a runtime that continues the work of another one.
const takenOver = "Another agent has begun this task and could not finish it. What it has changed is in the folder; check it before you continue.\n\n"

// hasThread reports whether a runtime has the session to resume.
func (r *attempt) hasThread(token string) bool {
	return token == cmp.Or(r.given.ThreadRuntime, r.backend.Runtime)
}

// checkThread leaves a session that no runtime of the backend has.
func (r *attempt) checkThread() {
	if r.given.ThreadID != "" && !slices.ContainsFunc(r.backend.tokens(), r.hasThread) {
		r.report.notice("the session is one of " + r.given.ThreadRuntime + ", which this worker does not run; a new one begins")
		r.given.ThreadID = ""
	}
}

// ready returns the runtimes to try, without those in cooldown while there is another. The
// one with the session to resume is the first.
func (r *attempt) ready() []string {
	tokens := r.backend.tokens()
	if i := slices.IndexFunc(tokens, r.hasThread); r.given.ThreadID != "" && i > 0 {
		tokens = slices.Insert(slices.Delete(tokens, i, i+1), 0, r.given.ThreadRuntime)
	}
	if r.backend.Cooldowns == nil {
		return tokens
	}
	ready := slices.DeleteFunc(slices.Clone(tokens), func(token string) bool {
		c, resting, err := r.backend.Cooldowns.Get(token, time.Now())
		if err != nil {
			r.report.progress("warning: " + err.Error())
		}
		if resting && len(tokens) > 1 {
			r.report.progress(token + " is " + c.String())
		}
		return resting
	})
	if len(ready) == 0 {
		return tokens
	}
	return ready
}

// rest starts the cooldown of a runtime that is out of quota or not logged in, and clears
// that of one that has worked.
func (r *attempt) rest(token string, err error) {
	store, length := r.backend.Cooldowns, time.Duration(0)
	switch {
	case store == nil:
		return
	case err == nil:
		_, err = store.Clear(token)
	case errors.Is(err, agent.ErrQuota):
		length = fallback.QuotaCooldown
	case errors.Is(err, agent.ErrAuthentication):
		length = fallback.AuthenticationCooldown
	default:
		return
	}
	if length > 0 {
		now := time.Now().UTC().Round(0)
		err = store.Put(fallback.Cooldown{Runtime: token, Kind: agent.KindOf(err), Reason: line(r.report.mask.Text(err.Error()), 300), Since: now, Until: now.Add(length)})
	}
	if err != nil {
		r.report.progress("warning: cooldown of " + token + ": " + err.Error())
	}
}

// limit ends the attempt when its time is over. The returned function lifts the limit.
func (r *attempt) limit() (lift func()) {
	if r.given.Timeout <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(r.given.Timeout, func() {
		r.mu.Lock()
		r.timedOut = !r.over
		c := r.talk
		r.mu.Unlock()
		if !r.timedOut {
			return
		}
		r.cancel(context.DeadlineExceeded) // of the opening
		if c != nil {
			c.stop(context.Background(), "the attempt took too long")
		}
	})
	return func() { timer.Stop() }
}

// openLimit bounds the opening of a session.
const openLimit = 2 * time.Minute

// request returns the request for a runtime.
func (r *attempt) request(c *conversation, previous string) agent.Request {
	a := &r.given
	req := agent.Request{
		Runtime: c.token, Prompt: a.Prompt, Workdir: a.Workdir, Model: cmp.Or(a.Model, "auto"),
		ReasoningEffort: agent.ReasoningEffort(a.Effort), Access: a.Sandbox.Access(),
		Env: slices.Clone(a.Env), Resume: a.ThreadID, Timeout: openLimit, Labels: a.Labels,
	}
	req.Labels.Previous = previous
	switch {
	case !r.hasThread(c.token):
		req.Resume = ""
	case a.ThreadID != "" && a.StateDir != "" && !c.keepsState():
		r.report.notice("the session of " + label(c.runtime) + " was not kept; a new one begins")
		req.Resume = ""
	}
	if a.Timeout > 0 {
		req.Timeout = min(openLimit, a.Timeout)
	}
	if c.token == r.backend.Runtime {
		req.Args = r.backend.Args
	} else {
		req.Model = "auto" // a model's name means nothing to another runtime
	}
	return req
}

// fallsBack reports whether another runtime may do better after err.
func (r *attempt) fallsBack(err error) bool {
	if r.ctx.Err() != nil {
		return false
	}
	return errors.Is(err, agent.ErrQuota) || errors.Is(err, agent.ErrAuthentication) || errors.Is(err, agent.ErrNotInstalled)
}

// settle makes the outcome.
func (r *attempt) settle(c *conversation, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	switch {
	case r.timedOut:
		err = &agent.Error{Kind: agent.ErrTimeout, Runtime: c.token, Err: fmt.Errorf("the attempt took longer than %v", r.given.Timeout)}
	case r.canceled:
		err = &agent.Error{Kind: agent.ErrCanceled, Runtime: c.token, Err: cmp.Or(context.Cause(r.ctx), errors.New("the attempt was stopped"))}
	}
	r.outcome = Outcome{
		Result: resultOf(err), Err: err, Retryable: c.crashed && !r.timedOut && !r.canceled,
		Text: r.report.mask.Text(c.result.Text), Duration: time.Since(r.begun),
		Undelivered: c.undelivered, Attempts: r.tried,
	}
	c.describe(&r.outcome)
	r.change()
}

// change notifies those who wait; r.mu is held.
func (r *attempt) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *attempt) Done() <-chan struct{} { return r.done }

func (r *attempt) Outcome() Outcome {
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome
}

// begin waits for a conversation that takes messages and keeps it from being settled
// until end is called.
func (r *attempt) begin(ctx context.Context) (c *conversation, end func(), err error) {
	for {
		r.mu.Lock()
		c, changed := r.talk, r.changed
		switch {
		case r.over:
			r.mu.Unlock()
			return nil, nil, ErrOver
		case c != nil && c.takes:
			c.saying++
			r.mu.Unlock()
			return c, func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				c.saying--
				r.change()
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

func (r *attempt) Say(ctx context.Context, text string) (Delivery, error) {
	if strings.TrimSpace(text) == "" {
		return "", agent.Usagef("the message is empty; nothing was sent")
	}
	c, end, err := r.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	delivery := c.say(ctx, text)
	r.mu.Lock()
	r.said = append(r.said, text)
	r.mu.Unlock()
	return delivery, nil
}

func (r *attempt) Interrupt(ctx context.Context) error {
	c, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := c.session.Interrupt(ctx); !errors.Is(err, session.ErrTooLate) {
		return err
	}
	return nil // the turn has just ended
}

func (r *attempt) Ask(ctx context.Context, prompt string) (string, error) {
	select {
	case <-r.done:
	default:
		return "", errors.New("the attempt is not done; use Say")
	}
	r.mu.Lock()
	c := r.talk
	r.mu.Unlock()
	if c == nil {
		return "", ErrOver
	}
	turn := c.session.Send(session.Message{Text: prompt})
	result, err := turn.Wait(ctx)
	if ctx.Err() != nil {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), InterruptGrace)
		defer cancel()
		_ = c.session.Interrupt(grace) // Stop ends an agent that does not respond
	}
	r.report.flush()
	if errors.Is(err, session.ErrStopped) {
		err = ErrOver
	}
	return r.report.mask.Text(result.Text), err
}

func (r *attempt) Stop(ctx context.Context, reason string) Outcome {
	r.stopping.Do(func() {
		r.unwatch()
		r.mu.Lock()
		r.canceled = !r.over
		c := r.talk
		r.mu.Unlock()
		r.cancel(errors.New(cmp.Or(reason, "the attempt was stopped")))
		if c != nil {
			c.stop(ctx, reason)
		}
		<-r.done
		r.mu.Lock()
		c = r.talk
		r.mu.Unlock()
		if c != nil { // it was opened meanwhile
			c.stop(ctx, reason)
		}
		r.report.close()
	})
	return r.Outcome()
}

// label is what notices call the session of a runtime.
func label(rt registry.Runtime) string {
	if rt.ID == runtimeAppServer {
		return "Codex app-server"
	}
	return rt.Name
}
