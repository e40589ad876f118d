package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// ErrStopped is the error of a session that takes no more messages.
var ErrStopped = errors.New("the session has ended")

// errInterrupted is why a message was not delivered that Interrupt found waiting.
var errInterrupted = errors.New("the turn was interrupted")

// A Session is a conversation with one agent. Its methods may be called
// concurrently, also from callbacks, except Stop, which waits for the
// callbacks.
type Session struct {
	runtime string
	engine  engine.Engine
	process engine.Process
	options Options
	prefix  string              // of the next message; under calls
	guard   func(string) string // keeps a message from being a command
	takes   []string            // media types of files
	start   engine.Start        // for the policy
	calls   chan struct{}       // holds a token during a call of the engine
	ending  sync.Once           // of the conversation with the engine
	wake    chan struct{}
	closed  chan struct{} // the agent's output has ended

	mu         sync.Mutex
	info       engine.Info
	turns      int     // number of the last turn
	urgent     []*Turn // messages that came too late to steer
	queue      []*Turn
	current    *Turn
	usage      *agent.Usage // of all turns
	approvals  map[string]*approvalRequest
	asked      int
	access     agent.Access // now
	deciding   int          // answers of the policy that are on their way
	interrupts int          // that the agent has not answered
	stopping   bool
	reason     string // why it ended
	failure    error  // why it ended before it was stopped
	lost       bool   // Options.Events has failed; used by Sink.Event alone
}

// Open opens a session of runtime, a token for texts, with the engine e on t. It
// returns when a message can be sent. If Open returns an error, the process has
// ended.
func Open(ctx context.Context, runtime string, e engine.Engine, p engine.Process, t engine.Transport, start engine.Start, o Options) (*Session, error) {
	s := &Session{
		runtime: runtime, engine: e, process: p, options: o,
		calls:     make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		closed:    make(chan struct{}),
		approvals: map[string]*approvalRequest{},
		prefix:    start.Prefix,
		takes:     start.Attachments,
		start:     start,
		access:    start.Access,
		guard:     func(text string) string { return text },
	}
	if start.SlashCommands {
		s.guard = agent.GuardSlash
	}
	info, err := e.Open(ctx, t, start, (*sink)(s))
	if err != nil {
		_ = e.Close() // it is ended anyway
		p.Stop()
		<-p.Done()
		return nil, s.openError(ctx, err)
	}
	s.mu.Lock()
	merge(&s.info, info)
	s.mu.Unlock()
	go s.pump()
	return s, nil
}

// openError gives the error of an engine that could not open a kind.
func (s *Session) openError(ctx context.Context, err error) error {
	err = s.masked(err)
	if _, ok := errors.AsType[*agent.Error](err); ok {
		return err
	}
	kind := agent.ErrAgent
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		kind = agent.ErrTimeout
	case ctx.Err() != nil:
		kind = agent.ErrCanceled
	}
	return &agent.Error{Kind: kind, Runtime: s.runtime, Err: fmt.Errorf("the session cannot be opened: %w", err)}
}

// masked returns err without the secrets that an agent may repeat in it. Its kind stays.
func (s *Session) masked(err error) error {
	if err == nil {
		return nil
	}
	text := s.mask(err.Error())
	if text == err.Error() {
		return err
	}
	if e, ok := err.(*agent.Error); ok {
		return &agent.Error{Kind: e.Kind, Runtime: e.Runtime, Err: s.masked(e.Err)}
	}
	return &maskedError{text, err}
}

// mask returns a text of the agent without secrets, if the process knows them.
func (s *Session) mask(text string) string {
	if p, ok := s.process.(interface{ Mask(string) string }); ok {
		return p.Mask(text)
	}
	return text
}

type maskedError struct {
	text string
	error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.error }

func merge(i *engine.Info, other engine.Info) {
	if other.SessionID != "" {
		i.SessionID = other.SessionID
	}
	if other.Model != "" {
		i.Model = other.Model
	}
	i.Steers = i.Steers || other.Steers
	if len(other.Models) > 0 {
		i.Models = other.Models
	}
}

// Send queues a message for a separate turn. The turn ends at once, with
// ErrNotDelivered in its error, when [Session.Check] refuses the message or, with
// ErrStopped, when the session has ended.
func (s *Session) Send(m Message) *Turn {
	t := newTurn(m)
	s.add(&s.queue, t)
	return t
}

// Check returns an agent.ErrUsage error if the agent cannot take the attachments of m:
// see agent.CheckAttachments.
func (s *Session) Check(m Message) error {
	takes := s.takes
	if _, ok := s.engine.(engine.Attacher); !ok {
		takes = nil
	}
	return agent.CheckAttachments(m.Attachments, takes, func(a agent.Attachment) error {
		return &agent.Error{Kind: agent.ErrUsage, Runtime: s.runtime, Err: fmt.Errorf("the session cannot take the file %q (%s)", a.Name, a.MediaType())}
	})
}

// Steer adds a message to the running turn and returns that turn. If no turn is
// running, if it ends before the message arrives, or if the runtime cannot be
// steered, the message becomes the next turn, which Steer returns. The same
// happens if the agent does not confirm the message before ctx or the message's
// Timeout ends; the message can then arrive twice.
func (s *Session) Steer(ctx context.Context, m Message) *Turn {
	t := newTurn(m)
	if running := s.steer(ctx, t); running != nil {
		return running
	}
	s.add(&s.urgent, t)
	return t
}

// steer returns the running turn if it has got the message of t, and nil otherwise.
func (s *Session) steer(ctx context.Context, t *Turn) *Turn {
	m := t.message
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.Timeout)
		defer cancel()
	}
	if s.lock(ctx) != nil { // a turn that begins has begun, and none begins now
		return nil
	}
	defer s.unlock()
	s.mu.Lock()
	running, steers := s.current, s.info.Steers
	s.mu.Unlock()
	if running == nil || !steers || len(agent.Files(m.Attachments)) > 0 || s.Check(m) != nil {
		return nil
	}
	s.announce(t)
	if s.engine.Steer(ctx, s.guard(m.text())) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(running, m)
	return running
}

// lock waits for the engine, until ctx ends.
func (s *Session) lock(ctx context.Context) error {
	select {
	case s.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) unlock() { <-s.calls }

// add queues a turn in list.
func (s *Session) add(list *[]*Turn, t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	t.number = s.turns
	if s.stopping {
		s.end(t, agent.Result{ExitCode: -1}, s.undelivered(agent.ErrCanceled, ErrStopped))
		return
	}
	if err := s.Check(t.message); err != nil {
		s.end(t, agent.Result{ExitCode: -1}, s.undelivered(agent.ErrUsage, err))
		return
	}
	*list = append(*list, t)
	if t.message.Timeout > 0 {
		time.AfterFunc(t.message.Timeout, func() { s.expire(t) })
	}
	s.signal()
}

func (s *Session) undelivered(kind, why error) error {
	return &agent.Error{Kind: kind, Runtime: s.runtime, Err: fmt.Errorf("%w: %w", ErrNotDelivered, s.masked(why))}
}

// expired returns the error of a turn that was not begun within its time.
func (s *Session) expired(t *Turn) error {
	return s.undelivered(agent.ErrTimeout, fmt.Errorf("it waited for %v", t.message.Timeout))
}

// signal lets the pump check whether it has something to do.
func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// expire ends a turn that has waited too long.
func (s *Session) expire(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range []*[]*Turn{&s.urgent, &s.queue} {
		if i := slices.Index(*list, t); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			s.end(t, agent.Result{ExitCode: -1}, s.expired(t))
			return
		}
	}
}

// pump begins the turns, one after the other, until the session has ended.
func (s *Session) pump() {
	for {
		select {
		case <-s.closed:
			return
		case <-s.wake:
		}
		for s.begin() {
		}
	}
}

// begin begins the next turn if there is one and none is running. It reports
// whether another one may be begun at once.
func (s *Session) begin() bool {
	s.calls <- struct{}{}
	defer s.unlock()
	t := s.take()
	if t == nil {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	if t.message.Timeout > 0 {
		ctx, cancel = context.WithDeadline(ctx, t.queued.Add(t.message.Timeout))
	}
	defer cancel()
	if ctx.Err() != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current == t {
			s.current = nil
			s.end(t, agent.Result{ExitCode: -1}, s.expired(t))
		}
		return true
	}
	s.announce(t)
	err := s.deliver(ctx, t.message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.prefix = "" // under s.calls, like this
	}
	if s.current != t { // it has ended by a result or by the end of the agent
		return false
	}
	if err == nil {
		s.delivered(t)
		return false
	}
	s.current = nil
	kind := agent.ErrAgent
	switch {
	case ctx.Err() != nil:
		kind = agent.ErrTimeout
	case errors.Is(err, engine.ErrUnsupported):
		kind = agent.ErrUsage
	}
	s.end(t, agent.Result{SessionID: s.info.SessionID, Model: s.info.Model}, s.undelivered(kind, err))
	return true
}

// deliver gives a message to the engine.
func (s *Session) deliver(ctx context.Context, m Message) error {
	text := s.guard(s.prefix + m.text())
	if files := agent.Files(m.Attachments); len(files) > 0 {
		return s.engine.(engine.Attacher).SendAttached(ctx, text, files) // add has checked it
	}
	return s.engine.Send(ctx, text)
}

// text returns the text of m, with that of its attachments.
func (m Message) text() string { return agent.AttachmentText(m.Attachments) + m.Text }

// take makes the next message the current turn.
func (s *Session) take() *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil || s.interrupts > 0 || s.stopping {
		return nil
	}
	for _, list := range []*[]*Turn{&s.urgent, &s.queue} {
		if len(*list) > 0 {
			s.current = (*list)[0]
			*list = (*list)[1:]
			s.current.begun = time.Now()
			if s.usage != nil {
				s.current.before = *s.usage
			}
			s.limit(s.current)
			return s.current
		}
	}
	return nil
}

// SetModel sets the model of the following turns. It returns ErrUnsupported if
// the runtime cannot change it.
func (s *Session) SetModel(ctx context.Context, model string) error {
	return s.adjust(ctx, func(a engine.Adjuster) error { return a.SetModel(ctx, model) })
}

// SetAccess sets what the agent may do from now on. It returns ErrUnsupported
// if the runtime cannot change it, and the error of [Options.CheckAccess].
func (s *Session) SetAccess(ctx context.Context, access agent.Access) error {
	if err := s.options.CheckAccess(access); err != nil {
		return err
	}
	return s.adjust(ctx, func(a engine.Adjuster) error {
		err := a.SetAccess(ctx, access)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.access = access
		}
		return err
	})
}

func (s *Session) adjust(ctx context.Context, set func(engine.Adjuster) error) error {
	a, ok := s.engine.(engine.Adjuster)
	if !ok {
		return ErrUnsupported
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return s.masked(set(a))
}

// Interrupt ends the turn that is running, and the tools it has started. It returns
// once the request is sent to the agent; the turn ends with an error of kind
// [agent.ErrCanceled]. If no turn is running, the first waiting message is not
// delivered, and its turn ends with the same error. If no message waits either,
// Interrupt does nothing and returns ErrTooLate. If the agent does not answer,
// Interrupt blocks until ctx ends; other calls are not affected.
func (s *Session) Interrupt(ctx context.Context) error {
	return s.interrupt(ctx, nil)
}

// interrupt ends the turn t, nil for the one that is running or comes next.
func (s *Session) interrupt(ctx context.Context, t *Turn) error {
	t, err := s.beginInterrupt(ctx, t)
	if err != nil || t == nil {
		return err
	}
	err = s.engine.Interrupt(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		t.interrupts--
	}
	s.interrupts--
	s.signal()
	return s.masked(err)
}

// beginInterrupt returns the running turn, which is to be interrupted, nil for none,
// and keeps the next one from being begun meanwhile.
func (s *Session) beginInterrupt(ctx context.Context, t *Turn) (*Turn, error) {
	if err := s.lock(ctx); err != nil { // a turn that begins has begun
		return nil, err
	}
	defer s.unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t != nil && s.current != t {
		return nil, nil
	}
	if s.current != nil {
		s.current.interrupts++
		s.interrupts++
		return s.current, nil
	}
	if s.interrupts == 0 { // else what waits comes after the turn that was interrupted
		for _, list := range []*[]*Turn{&s.urgent, &s.queue} {
			if len(*list) > 0 {
				t := (*list)[0]
				*list = (*list)[1:]
				s.end(t, agent.Result{ExitCode: -1}, s.undelivered(agent.ErrCanceled, errInterrupted))
				return nil, nil
			}
		}
	}
	return nil, ErrTooLate
}

// State returns what the session is doing.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosed():
		return StateStopped
	case s.stopping:
		return StateStopping
	case len(s.approvals) > 0:
		return StateWaiting
	case s.current != nil:
		return StateRunning
	}
	return StateReady
}

func (s *Session) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Turns returns the number of the last turn and the number of turns that are
// not over.
func (s *Session) Turns() (last, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open = len(s.urgent) + len(s.queue)
	if s.current != nil {
		open++
	}
	return s.turns, open
}

// Info returns what the engine knows about the session so far.
func (s *Session) Info() engine.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// PID returns the ID of the agent's process, or 0 if unknown. The ID belongs to
// the agent until Done is closed.
func (s *Session) PID() int {
	if p, ok := s.process.(interface{ PID() int }); ok {
		return p.PID()
	}
	return 0
}

// Socket returns the socket of the tmux server that has the agent's terminal, which
// `tmux -S SOCKET attach` shows; "" if the agent has none.
func (s *Session) Socket() string {
	if p, ok := s.process.(interface{ Socket() string }); ok {
		return p.Socket()
	}
	return ""
}

// Ended returns a channel that is closed when the agent's output has been read
// and every turn has ended. The agent may still be about to exit.
func (s *Session) Ended() <-chan struct{} { return s.closed }

// Err returns why the agent ended wrongly. It returns nil while the agent runs
// and after a normal end.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Done returns a channel that is closed when the agent and all its processes
// have ended.
func (s *Session) Done() <-chan struct{} { return s.process.Done() }

// Stop ends the session. The reason is text for users. Queued messages are not
// delivered, a running turn ends with an error, and the agent ends: by itself, or by
// force after Options.CloseGrace or when ctx ends. Stop returns when all processes
// of the agent have ended. Stopping again does nothing.
func (s *Session) Stop(ctx context.Context, reason string) {
	s.mu.Lock()
	if !s.stopping {
		s.stopping, s.reason = true, reason
	}
	s.mu.Unlock()
	s.ending.Do(func() { _ = s.engine.Close() }) // an agent that cannot be asked is ended
	grace := time.NewTimer(orDefault(s.options.CloseGrace, DefaultCloseGrace))
	defer grace.Stop()
	select {
	case <-s.process.Done():
	case <-ctx.Done():
	case <-grace.C:
	}
	s.process.Stop()
	<-s.process.Done()
	<-s.closed
}

// limit bounds the time of t, which begins; s.mu is held.
func (s *Session) limit(t *Turn) {
	limit := t.message.TurnTimeout
	if limit == 0 {
		limit = s.options.TurnTimeout
	}
	if limit > 0 {
		t.timer = time.AfterFunc(limit, func() { s.overrun(t, limit) })
	}
}

// overrun ends a turn that takes longer than its limit, and the session if the
// agent does not end the turn.
func (s *Session) overrun(t *Turn, limit time.Duration) {
	s.mu.Lock()
	if s.current != t {
		s.mu.Unlock()
		return
	}
	t.overdue = &agent.Error{Kind: agent.ErrTimeout, Runtime: s.runtime, Err: fmt.Errorf("the turn took longer than %v", limit)}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), TurnGrace)
	defer cancel()
	go func() { _ = s.interrupt(ctx, t) }() // the turn shows the result
	select {
	case <-t.done:
	case <-ctx.Done():
		s.fail(t.overdue)
	}
}

// fail ends the session because of err.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.failure == nil && !s.stopping {
		s.failure = err
	}
	s.mu.Unlock()
	s.Stop(context.Background(), "")
}

func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}
