package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// conversation is a session of the client. Its requests are handled one after the other,
// by its queue.
type conversation struct {
	c       *connection
	manager *control.Manager
	id      string
	opened  chan struct{} // closed when the client knows the session
	queue   queue

	mu         sync.Mutex
	handle     control.SessionHandle
	session    *session.Session
	runtime    registry.Runtime
	settings   control.Settings  // that it has now
	servers    []agent.MCPServer // of the client
	translator *translator
	fresh      bool // no prompt was sent
	live       bool // the client knows the session
	pending    []any
	turns      []*session.Turn // of prompts that are not answered
	cancelled  bool            // they were
	cancels    int             // that wait in the queue
	insisted   *session.Turn   // see insist
	closed     bool            // by the client; it does not start again
	stopReason string          // of the turn that ended last, where it was not the usual one
}

// maxPending bounds the updates that wait until the client knows the session.
const maxPending = 1000

func (c *connection) newConversation(m *control.Manager, settings control.Settings) *conversation {
	return &conversation{c: c, manager: m, settings: settings, opened: make(chan struct{}), fresh: true}
}

// begin starts the session, or resumes it if resume is not empty. If the session is closed
// meanwhile, begin stops it.
func (s *conversation) begin(ctx context.Context, resume string) error {
	notices, _ := s.c.takes()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	opts := s.c.server.Start
	opts.Settings = s.settings
	opts.Identity.SessionID = s.id
	opts.UnsavedMCPServers = slices.Concat(opts.UnsavedMCPServers, s.servers)
	s.translator = newTranslator(s.settings.Workdir, strconv.FormatInt(time.Now().UnixMilli(), 36), notices)
	s.mu.Unlock()
	options := session.Options{Events: s.event, Approve: s.approve, Ask: s.ask}
	var handle control.SessionHandle
	var err error
	if resume == "" {
		handle, err = s.manager.StartWith(ctx, opts, options)
	} else {
		handle, err = s.manager.ResumeWith(ctx, control.SessionHandle{SessionID: resume}, control.ResumeOptions{Settings: opts.Settings, Env: opts.Env, UnsavedMCPServers: opts.UnsavedMCPServers}, options)
	}
	if err != nil {
		return err
	}
	held, err := s.manager.Session(handle)
	if err != nil {
		return err // it has ended already
	}
	rt, _, _ := registryOf(s.manager).ParseToken(handle.Runtime) // it has just been started
	s.mu.Lock()
	s.handle, s.session, s.runtime = handle, held, rt
	if s.id == "" {
		s.id = handle.SessionID
	}
	s.settings.Runtime = handle.Runtime
	s.fresh = s.fresh && resume == ""
	over := context.Cause(s.c.ctx)
	if s.closed {
		over = errClosed
	}
	s.mu.Unlock()
	if over != nil { // its end may have found another start of the session
		stop, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		s.stop(stop, over.Error())
	}
	return over
}

func registryOf(m *control.Manager) *registry.Registry {
	if m.Runner != nil && m.Runner.Registry != nil {
		return m.Runner.Registry
	}
	return registry.Default()
}

// restart stops the session and resumes it with other settings.
func (s *conversation) restart(ctx context.Context, settings control.Settings) error {
	s.mu.Lock()
	before, handle, fresh := s.settings, s.handle, s.fresh
	s.settings = settings
	s.mu.Unlock()
	stop, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := s.manager.Stop(stop, handle, "its settings change"); err != nil {
		return err
	}
	resume := handle.SessionID
	if fresh {
		resume = "" // there is no conversation
	}
	err := s.begin(ctx, resume)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	s.settings = before
	s.mu.Unlock()
	if again := s.begin(ctx, resume); again != nil {
		return fmt.Errorf("%w; the session has ended: %w", err, again)
	}
	return err
}

// current returns the handle of the session, which changes when it is restarted.
func (s *conversation) current() control.SessionHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handle
}

// stop ends the session.
func (s *conversation) stop(ctx context.Context, reason string) {
	if err := s.manager.Stop(ctx, s.current(), reason); err != nil {
		s.c.warn(fmt.Sprintf("session %s: %v", s.id, err))
	}
}

// close ends the session for the client. Prompts that are not answered are cancelled.
func (s *conversation) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(ctx, errClosed.Error())
}

// goLive sends what was held back until the client knows the session.
func (s *conversation) goLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.pending {
		s.write(u)
	}
	s.pending, s.live = nil, true
	close(s.opened)
}

// update sends an update. It returns when the update is written, so that a client that
// reads slowly slows the agent down.
func (s *conversation) update(u any) {
	s.mu.Lock()
	live := s.live
	if !live && len(s.pending) < maxPending {
		s.pending = append(s.pending, u)
	}
	s.mu.Unlock()
	if live {
		s.write(u)
	}
}

func (s *conversation) write(u any) {
	s.c.send(func(ctx context.Context) error { return s.c.rpc.Notify(ctx, methodUpdate, notification{s.id, u}) })
}

// event takes an event of the session.
func (s *conversation) event(e *agent.Event) error {
	if e.Kind == agent.KindWarning && e.Text != "" {
		s.c.warn(e.Text)
	}
	s.mu.Lock()
	t := s.translator
	if e.Kind == agent.KindResult && e.Subagent == "" {
		s.stopReason = stopReasons[e.Failure]
	}
	s.mu.Unlock()
	for _, u := range t.updates(e) {
		s.update(u)
	}
	if e.Kind == agent.KindQuestion && e.ApprovalID == "" {
		s.reportDeclined(e.Text, e.Questions)
	}
	return nil
}

// errBusy is the error of what cannot be done during a turn.
var errBusy = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a turn is running; wait for its end, or cancel it"}

// prompt takes the parameters of a prompt.
func (c *connection) prompt(ctx context.Context, params json.RawMessage, done func(answer, error)) {
	var p promptParams
	err := decode(params, &p)
	var s *conversation
	if err == nil {
		s, err = c.session(p.SessionID)
	}
	var message control.Message
	if err == nil {
		message, err = messageOf(p.Prompt)
	}
	if err == nil && !s.queue.add(func() { s.send(ctx, message, done) }) {
		err = errBusy
	}
	if err != nil {
		done(answer{}, err)
	}
}

// send sends a prompt.
func (s *conversation) send(ctx context.Context, m control.Message, done func(answer, error)) {
	select {
	case <-s.opened: // else the turn could end before its updates are sent
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		done(answer{}, context.Cause(ctx))
		return
	}
	s.mu.Lock()
	busy, held, handle, settings := len(s.turns) > 0, s.session, s.handle, s.settings
	s.mu.Unlock()
	var turn *session.Turn
	var err error
	switch {
	case busy && held.Info().Steers:
		turn, err = s.manager.Steer(ctx, handle, m)
	case busy:
		err = errBusy
	default:
		if held.State() == session.StateStopping || held.State().Ended() { // such as by Settings.Idle
			err = s.restart(ctx, settings)
		}
		if err == nil {
			turn, err = s.manager.Send(s.current(), m)
		}
	}
	s.mu.Lock()
	if err != nil {
		var a answer
		if s.closed {
			a.result, err = promptResult{StopReason: "cancelled"}, nil
		}
		s.mu.Unlock()
		done(a, err)
		return
	}
	s.turns, s.fresh, s.cancelled = append(s.turns, turn), false, busy && s.cancelled
	s.insist()
	s.mu.Unlock()
	go s.await(ctx, turn, done)
}

// await answers a prompt when its turn is over.
func (s *conversation) await(ctx context.Context, turn *session.Turn, done func(answer, error)) {
	select {
	case <-turn.Done():
	case <-ctx.Done():
		s.cancel()
		<-turn.Done()
	}
	result, err := turn.Wait(context.Background()) // is over
	s.mu.Lock()
	cancelled, reason := s.cancelled || s.closed, s.stopReason
	if i := slices.Index(s.turns, turn); i >= 0 {
		s.turns = slices.Delete(s.turns, i, i+1)
	}
	s.mu.Unlock()
	got := promptResult{StopReason: "end_turn", Usage: tokens(result.Usage)}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case cancelled, errors.Is(err, agent.ErrCanceled) && !errors.Is(err, session.ErrStopped):
		got.StopReason, err = "cancelled", nil
	case err != nil && reason != "":
		got.StopReason, err = reason, nil
	}
	done(answer{result: got}, err)
}

// stopReasons are how turns end that the agent has not finished, by their failure.
var stopReasons = map[agent.Failure]string{
	agent.FailureMaxTokens:   "max_tokens",
	agent.FailureMaxRequests: "max_turn_requests",
	agent.FailureRefusal:     "refusal",
}

// tokens returns what a turn has consumed, nil if that is unknown.
func tokens(u *agent.Usage) *usage {
	if u == nil {
		return nil
	}
	return &usage{Total: u.Input + u.Output, Input: u.Input, Output: u.Output, Cached: u.Cached, Thought: u.Reasoning}
}

// cancel ends the turn that is running, and those of the prompts in the queue. If the queue
// takes no more, a cancel is its last.
func (s *conversation) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.addUpTo(maxWaiting+1, s.interrupt) {
		s.cancels++
		s.insist()
	}
}

// interrupt interrupts the turn that is running.
func (s *conversation) interrupt() {
	s.mu.Lock()
	s.cancels--
	held, busy := s.session, len(s.turns) > 0
	s.mu.Unlock()
	if !busy {
		return
	}
	ctx, cancel := context.WithTimeout(s.c.ctx, s.c.server.grace())
	defer cancel()
	if err := held.Interrupt(ctx); err != nil && !errors.Is(err, session.ErrTooLate) && s.c.ctx.Err() == nil {
		s.c.warn(fmt.Sprintf("session %s: the turn cannot be cancelled: %v", s.id, err))
	}
}

// insist marks the turns as cancelled if a cancel waits, and bounds the time of the first:
// the agent may not answer what comes before the cancel in the queue. s.mu is held.
func (s *conversation) insist() {
	if s.cancels == 0 || len(s.turns) == 0 {
		return
	}
	s.cancelled = true
	if turn := s.turns[0]; turn != s.insisted {
		s.insisted = turn
		go s.bound(turn)
	}
}

// bound stops the session if its agent does not end a turn that was cancelled.
func (s *conversation) bound(turn *session.Turn) {
	patience := time.NewTimer(s.c.server.grace())
	defer patience.Stop()
	select {
	case <-turn.Done():
	case <-s.c.ctx.Done():
	case <-patience.C:
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		s.stop(ctx, "the agent did not end a turn that was cancelled")
	}
}

// session returns the session of the client with an ID.
func (c *connection) session(id string) (*conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		return s, nil
	}
	return nil, &jsonrpc.Error{Code: codeNotFound, Message: fmt.Sprintf("session %q is not open; load or resume it first", id)}
}

// queue does things one after the other, on a goroutine that runs while there are any.
type queue struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool
}

// maxWaiting bounds what waits in a queue.
const maxWaiting = 100

// add adds something to do, unless too much waits.
func (q *queue) add(do func()) bool { return q.addUpTo(maxWaiting, do) }

// addUpTo is add with another limit.
func (q *queue) addUpTo(limit int, do func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= limit {
		return false
	}
	q.waiting = append(q.waiting, do)
	if !q.busy {
		q.busy = true
		go q.work()
	}
	return true
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		do := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		do()
	}
}
