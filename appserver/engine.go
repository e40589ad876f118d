package appserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// An Engine is an engine.Engine for one thread of an App Server. The access of the
// request decides the sandbox and the approval policy. The server's sandbox
// confines to the workdir what the server runs without approval; the engine itself
// never accepts an approval request without an answer from the caller.
type Engine struct {
	// Info is how the engine introduces itself.
	Info ClientInfo

	client    *Client
	transport engine.Transport
	start     engine.Start
	sink      engine.Sink
	decoder   decoder
	turns     turns
	maxLine   int // zero is that of the client

	approvals engine.Approvals[request]

	mu     sync.Mutex
	thread string
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Attacher   = (*Engine)(nil)
	_ engine.Questioner = (*Engine)(nil)
)

// Open does the handshake and starts or resumes a thread.
func (e *Engine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.transport, e.sink, e.start = t, sink, start
	e.client = connect(t, Callbacks{Notification: e.notification, Approval: e.approval, Question: e.question, Unknown: e.unknown}, e.maxLine)
	go func() {
		sink.Closed(e.client.Err())
	}()
	if err := e.client.Initialize(ctx, e.Info); err != nil {
		return engine.Info{}, err
	}
	params := ThreadParams{Workdir: start.Workdir, Model: start.Model, ApprovalPolicy: "on-request"}
	switch start.Access {
	case agent.AccessRead:
		params.Sandbox = "read-only"
	case agent.AccessFull:
		params.Sandbox, params.ApprovalPolicy = "danger-full-access", "never"
	default:
		params.Sandbox = "workspace-write"
	}
	var thread Thread
	var err error
	if start.Resume != "" {
		thread, err = e.client.ResumeThread(ctx, start.Resume, params)
	} else {
		thread, err = e.client.StartThread(ctx, params)
	}
	if err != nil {
		return engine.Info{}, err
	}
	e.mu.Lock()
	e.thread = thread.ID
	e.mu.Unlock()
	return engine.Info{SessionID: thread.ID, Model: thread.Model, Steers: true}, nil
}

// answerGrace is how long the answer to turn/start may take when a turn has begun.
const answerGrace = 2 * time.Second

// Send begins a turn. If the server reports its beginning only after ctx has
// ended, the engine ends the turn at once.
func (e *Engine) Send(ctx context.Context, text string) error { return e.begin(ctx, textInput(text)) }

// SendAttached is Send for a message with images.
func (e *Engine) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	message := textInput(text)
	for _, file := range files {
		url := "data:" + file.MediaType() + ";base64," + base64.StdEncoding.EncodeToString(file.Data)
		message = append(message, input{Type: "image", URL: url})
	}
	return e.begin(ctx, message)
}

// begin begins a turn with a message.
func (e *Engine) begin(ctx context.Context, message []input) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := e.turns.begin(func() { time.AfterFunc(answerGrace, cancel) })
	_, err := e.client.startTurn(ctx, e.threadID(), message, func(turnID string) {
		if e.turns.answered(b, turnID) {
			e.client.conn.Send(interruptMethod, turnParams{e.threadID(), turnID}) // which nothing waits for
		}
	})
	if e.turns.begun(b, err) {
		return nil
	}
	return err
}

// Steer adds text to the running turn.
func (e *Engine) Steer(ctx context.Context, text string) error {
	turn := e.turns.current()
	if turn == "" {
		return engine.ErrTooLate
	}
	err := e.client.SteerTurn(ctx, e.threadID(), turn, text)
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return engine.ErrTooLate
	}
	return err
}

// Interrupt ends the running turn, and the commands that the server leaves running. A
// server refuses to interrupt between its answer to turn/start and turn/started; the
// engine then repeats the request once the turn has begun.
func (e *Engine) Interrupt(ctx context.Context) error {
	turn := e.turns.current()
	for turn != "" && e.turns.current() == turn {
		begun := e.turns.hasBegun(turn)
		err := e.client.InterruptTurn(ctx, e.threadID(), turn)
		if e.transport.EndTools != nil {
			e.transport.EndTools()
		}
		_, refused := errors.AsType[*jsonrpc.Error](err)
		switch {
		case refused && e.turns.current() != turn:
			return nil // it has ended by itself
		case !refused || begun:
			return err
		}
		if err := e.turns.waitBegun(ctx, e.client.Done(), turn); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) threadID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.thread
}

// Answer answers an approval request.
func (e *Engine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	r, open := e.approvals.Take(approvalID)
	switch {
	case !open:
		return engine.ErrTooLate
	case r.questions == nil:
		return e.client.Answer(ctx, r.id, d)
	}
	var err error
	if d == engine.Cancel {
		err = e.Interrupt(ctx) // first, or the turn would continue for a while
	}
	return errors.Join(err, e.client.AnswerQuestions(ctx, r.id, nil))
}

// Close ends the server's input, which makes it exit.
func (e *Engine) Close() error {
	if e.client == nil {
		return nil
	}
	return e.client.Close()
}

// approval passes an approval request on.
func (e *Engine) approval(r Request) { e.ask(r, e.decoder.approval(r, e.start), nil) }

// ask passes a request on.
func (e *Engine) ask(r Request, event agent.Event, questions []string) {
	id, denied, _ := e.approvals.Open(string(r.ID), &event, request{slices.Clone(r.ID), questions})
	if denied != "" {
		e.client.decline(r.ID, r.Method)
		event.Failed, event.Text = true, denied
		e.sink.Event(&event)
		e.sink.Answered(id)
		return
	}
	event.ApprovalID = id
	e.sink.Event(&event)
}

// declineAll declines what is open when the turn ends: most went with it, but a subagent
// that works on would wait.
func (e *Engine) declineAll() {
	ids, open := e.approvals.Clear()
	for i, r := range open {
		method := CommandApproval
		if r.questions != nil {
			method = QuestionRequest
		}
		e.client.decline(r.id, method)
		e.sink.Answered(ids[i])
	}
}

func (e *Engine) notification(n Notification) { e.note(n, nil) }

// note takes a notification, or what the head of one says that was cut.
func (e *Engine) note(n Notification, cut *engine.Head) {
	var about about
	_ = json.Unmarshal(n.Params, &about) // what is missing is empty
	thread := e.threadID()
	main := about.ThreadID == "" || thread == "" || about.ThreadID == thread
	switch {
	case n.Method == "serverRequest/resolved":
		if id, open := e.approvals.Withdraw(string(about.RequestID)); open {
			e.sink.Answered(id)
		}
	case n.Method == "turn/started" && main:
		e.turns.started(about.id())
	case n.Method == completedMethod && main:
		if !e.turns.completed(about.id()) {
			e.sink.Event(&agent.Event{Kind: agent.KindHeartbeat}) // of a turn that was given up
			return
		}
		e.declineAll()
	}
	subagent := ""
	if !main {
		subagent = about.ThreadID
	}
	for _, event := range e.decoder.events(n, subagent, e.turns.current()) {
		if cut != nil {
			cut.Mark(&event, about.Turn.Status != "")
		}
		e.sink.Event(&event)
	}
}

// about says what a notification is about.
type about struct {
	ThreadID  string          `json:"threadId"`
	RequestID json.RawMessage `json:"requestId"`
	turnReply
}

// unknown takes a line that is not a message, or the head of one.
func (e *Engine) unknown(line []byte, truncated bool, size int64) {
	cut := &engine.Head{Line: line, Long: truncated, Size: size}
	if m, ok := jsonrpc.Parse(line, false); ok && m.Method != "" && m.ID == nil {
		e.note(Notification{m.Method, m.Params}, cut)
		return
	}
	e.sink.Event(cut.Raw())
}
