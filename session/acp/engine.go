package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// An Engine is a engine.Engine for one session of an agent process. The zero
// value is usable.
type Engine struct {
	// Info is how the engine introduces itself. Without a name it does not.
	Info ClientInfo

	// AuthMethod is the ID of the login method requested before a session
	// is opened. Empty requests none.
	AuthMethod string

	// Modes are the agent's IDs of modes for access. For an access without
	// an ID the agent stays in its current mode.
	Modes map[agent.Access]string

	// Meta is the member _meta of the requests that begin or load a session,
	// for settings that only that agent knows. Nil leaves the member out.
	Meta map[string]json.RawMessage

	// Notices lists prefixes of messages that come from the agent program and
	// not from the model, such as "[MODE_UPDATE] ". Such messages are not
	// part of an answer.
	Notices []string

	// Guard splits a message into the pieces of text to send, so that the agent
	// does not read it as a command. It is for agents for which a line break
	// before the message is not enough. Nil sends one piece.
	Guard func(text string) []string

	// Permits reports whether access permits calling a tool of the given kind, as
	// the protocol defines kinds. The engine then accepts the agent's request
	// without asking the user; without full access it does so only if the request
	// names files and [engine.Start.MayEdit] permits every one of them. It is for
	// agents whose modes cannot express this. Nil permits nothing.
	Permits func(access agent.Access, kind string) bool

	// Command returns the command line that a tool call would run, for [agent.Tool], from
	// its title and the text of the request, or "" if it does not show all of it. It is
	// for agents that give no input of such a call. Nil returns "".
	Command func(title, text string, start engine.Start) string

	// SilenceFails treats a turn as failed if it ends successfully but without
	// text, tool calls or counted tokens. Some agents end a turn this way when
	// they cannot read the model's answer.
	SilenceFails bool

	// ModelsOffered says that the agent gets its model by the protocol only: a session
	// that names one is not opened if the agent offers no models.
	ModelsOffered bool

	// ModelInArgs says that the agent gets the model of a session in its arguments: it is
	// not set by the protocol when the session opens. Some agents offer the same model
	// under another ID.
	ModelInArgs bool

	// EffortInArgs says that the agent gets the effort of a session in its arguments.
	// Otherwise a warning names an effort for which the agent offers no option.
	EffortInArgs bool

	// ServersInArgs says that the agent gets the MCP servers of a session in its arguments:
	// they are not passed by the protocol.
	ServersInArgs bool

	// Efforts are the agent's values of its option for the effort. For an effort
	// without a value the engine sends the effort itself.
	Efforts map[agent.ReasoningEffort]string

	// Failure classifies an error of the agent by its text, which ends in the code of
	// the error in parentheses. An empty result leaves it to the code. Nil leaves all
	// of them to it.
	Failure func(text string) agent.Failure

	// AnswerFailure reports whether a turn that ended as a success with an answer that
	// begins like this has failed all the same, and the class of that failure. It gets
	// at most 4 KiB of the text of the turn. Nil means that no such turn has failed.
	AnswerFailure func(beginning string) (failure agent.Failure, failed bool)

	// UpdateFails reports whether an update of session_info with this member _meta says that
	// the turn has failed, although it ends as a success. The text of the turn says why. Nil
	// means that none does.
	UpdateFails func(meta json.RawMessage) bool

	// LoadDelay returns how long to wait before loading a session created at
	// the given time. A session of unknown age counts as created now. Nil
	// means no delay.
	LoadDelay func(created, now time.Time) time.Duration

	maxLine    int // in tests
	start      engine.Start
	sink       engine.Sink
	conn       *jsonrpc.Conn
	closeInput func() error
	decoder    decoder     // of what the agent says in a turn
	usage      agent.Usage // up to now
	costBefore *float64    // of the turns before, nil if unknown
	approvals  engine.Approvals[*approval]
	speaking   sync.Mutex     // held during a call of the sink
	background sync.WaitGroup // the approval requests that are open

	takes promptCapabilities // of the agent, once open

	lateCancel <-chan struct{} // closed when a late turn is cancelled, nil without one

	mu          sync.Mutex
	access      agent.Access
	opened      opened // the session, as the agent opened it
	sessionID   string
	running     bool            // a turn is
	interrupted bool            // and was asked to end
	unwanted    int             // turns to come of messages that were given up
	prompted    bool            // a turn has begun here
	loading     bool            // what the agent says is of earlier turns
	dropped     int             // of that
	accepted    map[string]bool // edits, for the session
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Attacher   = (*Engine)(nil)
	_ engine.Adjuster   = (*Engine)(nil)
	_ engine.Questioner = (*Engine)(nil)
)

// Open greets the agent, begins or loads the session and sets model and mode.
func (e *Engine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.start, e.sink, e.access = start, sink, start.Access
	e.accepted = map[string]bool{}
	if start.Resume == "" {
		e.costBefore = new(float64)
	}
	e.conn = jsonrpc.New(t.Input, "2.0")
	e.closeInput = sync.OnceValue(e.conn.Close)
	go e.read(t.Output)
	info, err := e.open(ctx, start)
	if refusal, ok := errors.AsType[*refusal](err); ok {
		switch e.failure(refusal) {
		case agent.FailureAuthentication:
			err = &agent.Error{Kind: agent.ErrAuthentication, Err: err}
		case agent.FailureQuota:
			err = &agent.Error{Kind: agent.ErrQuota, Err: err}
		}
	}
	return info, err
}

// read reads what the agent says until its output ends.
func (e *Engine) read(output io.Reader) {
	err := e.conn.Read(output, e.maxLine, jsonrpc.Handler{
		Notification: e.notification, Request: e.request, Decline: e.decline,
		Unknown: func(line []byte, truncated bool, size int64) {
			head := engine.Head{Line: line, Long: truncated, Size: size}
			e.emit(head.Raw())
		},
	})
	_ = e.closeInput() // the agent does not read it any more
	e.withdraw()
	e.background.Wait()
	e.sink.Closed(err)
}

// notification takes what the agent says by itself.
func (e *Engine) notification(m *jsonrpc.Message, line []byte) {
	switch m.Method {
	case methodCancelRequest:
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &params) // then none is open with that ID
		if id, ok := e.approvals.Withdraw(string(params.RequestID)); ok {
			e.conn.Refuse(params.RequestID, codeCancelled, "the request was cancelled")
			e.answered(id)
		}
		return
	case methodUpdate:
		if e.update(m.Params) {
			return
		}
	}
	e.emit(&agent.Event{Kind: agent.KindRaw, Text: string(line)})
}

// request takes a request of the agent.
func (e *Engine) request(m *jsonrpc.Message, line []byte) {
	code, text := jsonrpc.CodeMethodNotFound, "not supported by this client: "+m.Method
	var p permission
	var f form
	var err error
	switch m.Method {
	case methodPermission:
		if err = json.Unmarshal(m.Params, &p); err == nil {
			e.permission(m.ID, p)
			return
		}
	case methodElicit:
		if f, err = parseForm(m.Params); err == nil {
			e.elicit(m.ID, f)
			return
		}
	}
	if err != nil {
		code, text = jsonrpc.CodeInvalidParams, err.Error()
	}
	e.emit(&agent.Event{Kind: agent.KindRaw, Text: string(line)})
	e.conn.Refuse(m.ID, code, text)
}

// decline answers a request that cannot be read.
func (e *Engine) decline(id json.RawMessage, method string) {
	switch method {
	case methodPermission:
		e.conn.Reply(id, cancelled())
		return
	case methodElicit:
		e.conn.Reply(id, formAnswer{Action: actionCancel})
		return
	}
	e.conn.Refuse(id, jsonrpc.CodeMethodNotFound, "not supported by this client: "+method)
}

// emit passes an event on.
func (e *Engine) emit(event *agent.Event) {
	e.speaking.Lock()
	defer e.speaking.Unlock()
	e.sink.Event(event)
}

// Send begins a turn. It returns when the message is written: the agent
// sends no confirmation.
func (e *Engine) Send(ctx context.Context, text string) error { return e.SendAttached(ctx, text, nil) }

// SendAttached is Send for a message with files, which precede its text.
func (e *Engine) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	var message []promptBlock
	for _, file := range files {
		b, ok := e.takes.fileBlock(file)
		if !ok {
			return fmt.Errorf("the agent does not take the file %q (%s): %w", file.Name, file.MediaType(), engine.ErrUnsupported)
		}
		message = append(message, b)
	}
	message = append(message, e.blocks(text)...)
	if e.lateCancel != nil {
		select {
		case <-e.lateCancel:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	e.mu.Lock()
	e.running, e.interrupted, e.prompted = true, false, true
	params := promptParams{e.sessionID, message}
	e.mu.Unlock()
	turn := &turn{}
	_, begun, err := e.conn.Start(ctx, methodPrompt, params, func(m *jsonrpc.Message) { e.finish(turn, m) })
	if err == nil {
		return nil
	}
	e.mu.Lock()
	e.running = false
	turn.late = begun && ctx.Err() != nil && !turn.over
	if turn.late {
		e.unwanted++
	}
	e.mu.Unlock()
	if turn.late {
		e.cancelLate()
	}
	return err
}

// turn is a message to the agent; it is guarded by the mutex of its engine.
type turn struct {
	over bool // the agent has answered
	late bool // it was given up while it was written: the agent can still get it
}

// blocks returns a message as the protocol has it.
func (e *Engine) blocks(text string) []promptBlock {
	pieces := []string{text}
	if e.Guard != nil {
		pieces = e.Guard(text)
	}
	blocks := make([]promptBlock, len(pieces))
	for i, piece := range pieces {
		blocks[i] = promptBlock{Type: "text", Text: piece}
	}
	return blocks
}

// Steer returns ErrUnsupported: a second message would cancel the first.
func (e *Engine) Steer(context.Context, string) error { return engine.ErrUnsupported }

// Interrupt ends the turn and its tools.
func (e *Engine) Interrupt(ctx context.Context) error {
	e.mu.Lock()
	if !e.running {
		e.mu.Unlock()
		return nil
	}
	e.interrupted = true
	params := cancelParams{e.sessionID}
	e.mu.Unlock()
	err := e.conn.Notify(ctx, methodCancel, params)
	e.withdraw()
	return err
}

// Close ends the agent's input, which makes it exit.
func (e *Engine) Close() error {
	if e.closeInput == nil {
		return nil
	}
	return e.closeInput()
}
