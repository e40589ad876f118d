package delegation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// A Status is the state of a session.
type Status struct {
	SessionID string        `json:"session_id,omitempty"`
	Runtime   string        `json:"runtime,omitempty"`
	State     session.State `json:"state,omitempty"`
	Turn      int           `json:"turn,omitempty"` // the number of the last turn

	// Answer is that of the last turn if it has ended.
	Answer

	// Requests are what the agent waits for: questions, then approval requests, each the
	// oldest first.
	Requests []Request `json:"requests,omitempty"`
}

// A Request is an approval request of an agent, or questions.
type Request struct {
	ID        string           `json:"id"`
	Tool      string           `json:"tool,omitempty"`   // that the agent wants to call
	Input     string           `json:"input,omitempty"`  // of the tool
	Reason    string           `json:"reason,omitempty"` // as the agent gives it
	Questions []agent.Question `json:"questions,omitempty"`
}

// A conversation is a session of a broker.
type conversation struct {
	id   string
	asks bool // approval requests wait for the caller
	s    *session.Session
	log  *log

	over    func()                  // the budget no longer counts the agent
	last    atomic.Pointer[counted] // the last turn
	sending sync.Mutex              // one call at a time sends a message
}

// counted is a turn that the budget counts until ended is called.
type counted struct {
	turn  *session.Turn
	ended func()
}

// settle gives back to the budget what has ended, before the caller learns of it.
func (c *conversation) settle() {
	if last := c.last.Load(); last != nil && ended(last.turn) {
		last.ended()
	}
	select {
	case <-c.s.Done():
		c.over()
	default:
	}
}

// Start starts an agent, opens a session with it, and sends the prompt of task as
// [Broker.Send] does. Resume and Schema must not be set. If ctx ends before the turn, the
// session ends.
//
// asks reports that the caller can ask its user. Approval requests then wait for
// [Broker.Answer]; otherwise they wait if the settings have Approve, and are declined if
// not. They are always declined if the agent has access read. Questions always wait.
//
// The session lasts until [Broker.Stop], Close, or until it has had no turn for the limit
// of a run.
func (b *Broker) Start(ctx context.Context, task Task, asks bool, progress func(string)) (Status, error) {
	if task.Resume != "" || task.Schema != nil {
		return Status{}, agent.Usagef("a session has no use for resume and schema; nothing was started")
	}
	ctx, done, err := b.begin(ctx)
	if err != nil {
		return Status{}, err
	}
	defer done()
	req, err := b.request(task)
	if err == nil && req.Prompt == "" {
		err = agent.Usagef("the prompt is empty; nothing was started")
	}
	if err != nil {
		return Status{}, err
	}
	opts := control.StartOptions{
		Settings: control.Settings{
			Runtime: req.Runtime, Workdir: req.Workdir, Model: req.Model, ReasoningEffort: req.ReasoningEffort, Access: req.Access,
			StartTimeout: b.settings.Timeout, Idle: b.settings.Timeout, Record: b.settings.Record,
		},
		Env:           map[string]string{EnvBounds: b.bounds.below(req.Access).String()},
		InitialPrompt: req.Prompt,
	}
	if err := b.sessions.Check(ctx, opts); err != nil {
		return Status{}, err
	}
	opts.InitialPrompt = "" // it is sent as every message is
	over, err := b.budget.agent()
	if err != nil {
		return Status{}, err
	}
	limit, ended, err := b.budget.turn(task.Timeout)
	if err != nil {
		over()
		return Status{}, err
	}
	c, err := b.open(ctx, opts, asks, over)
	if err != nil {
		over()
		ended()
		return Status{}, err
	}
	turn, err := b.send(c, req.Prompt, limit, ended)
	if err != nil {
		_, _ = b.Stop(context.WithoutCancel(ctx), c.id) // it has no use
		return Status{}, err
	}
	status, err := b.await(ctx, c, turn, progress)
	if ctx.Err() != nil {
		_, _ = b.Stop(context.WithoutCancel(ctx), c.id) // the caller does not learn its ID
	}
	return status, err
}

// open starts the agent of a session; over is called when it has ended.
func (b *Broker) open(ctx context.Context, opts control.StartOptions, asks bool, over func()) (*conversation, error) {
	c := &conversation{over: over, asks: (asks || b.settings.Approve) && opts.Access != agent.AccessRead, log: newLog()}
	handle, err := b.sessions.StartWith(ctx, opts, session.Options{Events: c.log.event, Approve: c.approve, Ask: c.ask})
	if err == nil {
		c.id = handle.SessionID
		c.s, err = b.sessions.Session(handle)
	}
	if err != nil {
		return nil, err
	}
	go func() {
		<-c.s.Done()
		c.settle()
		c.log.changed()
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[c.id] = c
	return c, nil
}

// approve declines an approval request that does not wait for the caller.
func (c *conversation) approve(context.Context, session.Approval) session.Decision {
	if !c.asks {
		return session.Decline
	}
	c.log.changed()
	return ""
}

// ask leaves questions to the caller.
func (c *conversation) ask(context.Context, session.QuestionRequest) [][]string {
	c.log.changed()
	return nil
}

// find returns a session of this broker.
func (b *Broker) find(id string) (*conversation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.held[id]; c != nil {
		return c, nil
	}
	return nil, agent.Usagef("session %q was not started by this server", id)
}

// Send sends a message, whose turn may take timeout, or the limit of a run if it is zero.
// It returns when the turn has ended, with its error, or when the agent waits for an
// answer. If ctx ends first, the turn is interrupted. progress is that of Run.
func (b *Broker) Send(ctx context.Context, id, text string, timeout time.Duration, progress func(string)) (Status, error) {
	ctx, done, err := b.begin(ctx)
	if err != nil {
		return Status{}, err
	}
	defer done()
	c, err := b.find(id)
	if err != nil {
		return Status{}, err
	}
	turn, err := b.next(c, text, timeout)
	if err != nil {
		return b.status(c, nil), err
	}
	return b.await(ctx, c, turn, progress)
}

// next sends a message unless a turn is open.
func (b *Broker) next(c *conversation, text string, timeout time.Duration) (*session.Turn, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if _, open := c.s.Turns(); open > 0 {
		return nil, agent.Usagef("session %s has a turn that has not ended; the message was not sent", c.id)
	}
	limit, ended, err := b.budget.turn(timeout)
	if err != nil {
		return nil, err
	}
	return b.send(c, text, limit, ended)
}

// send sends a message; ended is called when its turn has ended.
func (b *Broker) send(c *conversation, text string, limit time.Duration, ended func()) (*session.Turn, error) {
	turn, err := b.sessions.Send(control.SessionHandle{SessionID: c.id}, control.Message{Text: text, Timeout: limit, TurnTimeout: limit})
	if err != nil {
		ended()
		return nil, err
	}
	c.last.Store(&counted{turn, ended})
	c.log.begin(turn)
	go func() {
		<-turn.Done()
		ended()
		c.log.changed()
	}()
	return turn, nil
}

// await waits until a turn of a session has ended or the agent waits for an answer.
func (b *Broker) await(ctx context.Context, c *conversation, turn *session.Turn, progress func(string)) (Status, error) {
	defer c.log.follow(progress)()
	for {
		changed := c.log.wait()
		over := ended(turn)
		if status := b.status(c, turn); over || len(status.Requests) > 0 {
			return status, turnError(turn, over)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.TurnGrace)
			err := c.s.Interrupt(stopping)
			cancel()
			if err != nil && !errors.Is(err, session.ErrTooLate) {
				_ = b.sessions.Stop(context.WithoutCancel(ctx), control.SessionHandle{SessionID: c.id}, "its turn could not be interrupted")
			}
			return b.status(c, nil), &agent.Error{Kind: agent.ErrCanceled, Err: context.Cause(ctx)}
		}
	}
}

// ended reports whether a turn has ended. It is false for nil: there was no turn yet.
func ended(turn *session.Turn) bool {
	if turn == nil {
		return false
	}
	select {
	case <-turn.Done():
		return true
	default:
		return false
	}
}

// turnError returns the error of a turn that is over.
func turnError(turn *session.Turn, over bool) error {
	if !over {
		return nil
	}
	_, err := turn.Wait(context.Background())
	return err
}

// status returns the state of a session, with the answer of a turn, if not nil, that is
// over.
func (b *Broker) status(c *conversation, turn *session.Turn) Status {
	status := Status{SessionID: c.id, State: c.s.State()}
	status.Turn, _ = c.s.Turns()
	if ended(turn) {
		result, _ := turn.Wait(context.Background())
		status.Answer = b.answer(result)
		status.Answer.Changes = c.log.changes(turn)
	}
	status.Runtime, status.Answer.SessionID = status.Answer.Runtime, ""
	for _, q := range c.s.Questions() {
		status.Requests = append(status.Requests, Request{ID: q.ID, Reason: b.text(q.Text), Questions: b.questions(q.Questions)})
	}
	if c.asks {
		for _, a := range c.s.Approvals() {
			status.Requests = append(status.Requests, b.approval(a))
		}
	}
	c.settle()
	return status
}

func (b *Broker) approval(a session.Approval) Request {
	r := Request{ID: a.ID, Reason: b.text(a.Reason)}
	if a.Tool != nil {
		r.Tool, r.Input = b.text(a.Tool.Name), b.text(string(a.Tool.Input))
	}
	return r
}

// questions returns what the caller gets of questions.
func (b *Broker) questions(list []agent.Question) []agent.Question {
	list = slices.Clone(list)
	for i := range list {
		q := &list[i]
		q.Header, q.Text, q.Options = b.text(q.Header), b.text(q.Text), slices.Clone(q.Options)
		for j, o := range q.Options {
			q.Options[j] = agent.Option{Label: b.text(o.Label), Description: b.text(o.Description)}
		}
	}
	return list
}

// text returns a text of an agent in printable form, within the bound of the settings.
func (b *Broker) text(text string) string {
	text, _ = bounded(text, b.settings.Output)
	return text
}

// A Reply answers a [Request].
type Reply struct {
	// Decision answers an approval request, or declines questions.
	Decision session.Decision
	// Answers answer questions, one each: see [session.QuestionRequest.Parse].
	Answers []string
	// ByUser reports that the user of the caller decided. Otherwise an approval request
	// can only be accepted if the settings have Approve.
	ByUser bool
}

// Answer answers a request of an agent, and waits as [Broker.Send] does.
func (b *Broker) Answer(ctx context.Context, id, request string, reply Reply, progress func(string)) (Status, error) {
	ctx, done, err := b.begin(ctx)
	if err != nil {
		return Status{}, err
	}
	defer done()
	c, err := b.find(id)
	if err != nil {
		return Status{}, err
	}
	if err := b.reply(ctx, c, request, reply); err != nil {
		return b.status(c, nil), err
	}
	return b.await(ctx, c, c.log.turn(), progress)
}

func (b *Broker) reply(ctx context.Context, c *conversation, request string, reply Reply) error {
	accepts := reply.Decision == session.Accept || reply.Decision == session.AcceptForSession
	for _, q := range c.s.Questions() {
		if q.ID != request || reply.Decision != "" && !accepts {
			continue
		}
		answers, err := q.Parse(reply.Answers)
		if err != nil {
			return err
		}
		return c.s.AnswerQuestions(ctx, request, answers)
	}
	switch {
	case reply.Decision == "":
		return agent.Usagef("request %q is not a question that is open; give a decision", request)
	case accepts && !c.asks || accepts && !reply.ByUser && !b.settings.Approve:
		return agent.Usagef("this server does not let the caller accept approval requests; start it with --approve")
	}
	if err := c.s.Answer(ctx, request, reply.Decision); err != nil {
		return agent.Usagef("request %q: %w", request, err)
	}
	return nil
}

// A Reading is what happened in a session.
type Reading struct {
	Status
	Notes []Note `json:"notes"`
	// Next is the number of the next note. Lost is how many notes after the given number
	// are no longer kept.
	Next int `json:"next"`
	Lost int `json:"lost,omitempty"`
}

// Read returns what happened in a session, from the note with the number from on, and the
// answer of its last turn. It waits for nothing. An error of the turn is returned with the
// reading.
func (b *Broker) Read(id string, from int) (Reading, error) {
	c, err := b.find(id)
	if err != nil {
		return Reading{Notes: []Note{}}, err
	}
	turn := c.log.turn()
	reading := Reading{Status: b.status(c, turn)}
	reading.Notes, reading.Next, reading.Lost = c.log.read(from, b.settings.Output)
	return reading, turnError(turn, ended(turn))
}

// Stop ends a session and returns when all its processes are gone.
func (b *Broker) Stop(ctx context.Context, id string) (Status, error) {
	c, err := b.find(id)
	if err != nil {
		return Status{}, err
	}
	err = b.sessions.Stop(ctx, control.SessionHandle{SessionID: id}, "stopped by the caller")
	<-c.s.Done()
	return b.status(c, c.log.turn()), err
}
