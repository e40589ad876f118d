package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// An Engine is a engine.Engine for one session of an agent process. The zero
// value is usable.
type Engine struct {
	// Info is how the engine introduces itself, by nothing without a name.
	Info sdk.Implementation

	// AuthMethod is the ID of the way to log in that is asked for before a
	// session is opened. Empty asks for none.
	AuthMethod string

	// Modes are the agent's IDs of modes for access. An access without one
	// leaves the agent in the mode it is in.
	Modes map[agent.Access]string

	// Notices are beginnings of messages that are the agent program's and not
	// the model's, such as "[MODE_UPDATE] ". They are no part of an answer.
	Notices []string

	// Guard returns a message as the pieces of text it is sent in, such that the
	// agent does not take it for a command, for agents that a line break before it
	// does not keep from that. Nil sends one piece.
	Guard func(text string) []string

	// Permits reports whether an access includes the call of a tool of a kind,
	// one of the protocol's. The engine then accepts the agent's request unasked;
	// without full access only where the request names files, and
	// [engine.Start.MayEdit] includes every one of them. It is for agents whose
	// modes cannot say it. Nil permits nothing.
	Permits func(access agent.Access, kind string) bool

	// SilenceFails says that a turn which ends well, but without a word, a tool
	// call or a token that is counted, has failed. Some agents end so what they
	// could not make out of their model.
	SilenceFails bool

	// LoadDelay returns how long a session that was created at a time must not
	// be loaded yet; one of unknown age counts as created now. Nil is not at
	// all. [NextMinute] is one.
	LoadDelay func(created, now time.Time) time.Duration

	maxLine    int // in tests
	start      engine.Start
	sink       engine.Sink
	connection *sdk.Connection
	wire       *wire
	closeInput func() error
	inbound    *inbound // the message of the agent that is dealt with
	decoder    decoder  // of what the agent says in a turn
	questions  engine.Questions[*question]
	speaking   sync.Mutex // held during a call of the sink

	lateCancel <-chan struct{} // closed when a late turn is cancelled, nil without one
	background sync.WaitGroup  // the turn, and the questions that are open

	mu          sync.Mutex
	closed      bool
	sessionID   string
	running     bool            // a turn is
	interrupted bool            // and was asked to end
	loading     bool            // what the agent says is of earlier turns
	dropped     int             // of that
	accepted    map[string]bool // edits, for the session
	usage       agent.Usage     // up to now
	models      bool            // the agent has models to choose from
	access      agent.Access
}

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Adjuster = (*Engine)(nil)
)

// Open greets the agent, begins or loads the session and sets model and mode.
func (e *Engine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.start = start
	e.connect(t, sink)
	info, err := e.open(ctx, start)
	if refusal, ok := errors.AsType[*refusal](err); ok && refusal.failure() == agent.FailureAuthentication {
		err = &agent.Error{Kind: agent.ErrAuthentication, Err: err}
	}
	return info, err
}

// connect puts the SDK on the transport and begins to read.
func (e *Engine) connect(t engine.Transport, sink engine.Sink) {
	lines, toSDK := io.Pipe()
	e.sink = sink
	e.closeInput = sync.OnceValue(t.Input.Close)
	e.accepted = map[string]bool{}
	e.wire = &wire{input: engine.NewLineWriter(t.Input), lines: toSDK, open: map[int64]*request{}}
	e.connection = sdk.NewConnection(e.handle, e.wire, lines)
	e.connection.SetLogger(slog.New(slog.DiscardHandler)) // before there is anything to log
	go e.read(t.Output)
}

// Send begins a turn. It returns when the message is written: the agent says
// nothing before its answer.
func (e *Engine) Send(ctx context.Context, text string) error {
	if e.lateCancel != nil {
		select {
		case <-e.lateCancel:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r := newRequest(ctx)
	r.turn = true
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return errClosed
	}
	e.running, e.interrupted = true, false
	params := sdk.PromptRequest{SessionId: sdk.SessionId(e.sessionID), Prompt: e.blocks(text)}
	e.background.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.background.Done()
		defer r.settle()
		result, err := call[promptResult](context.Background(), e, r, sdk.AgentMethodSessionPrompt, params)
		e.finish(r, result, err)
	}()
	<-r.sent
	if r.err != nil {
		<-r.settled
	}
	return r.err
}

// blocks returns a message as the protocol has it.
func (e *Engine) blocks(text string) []sdk.ContentBlock {
	pieces := []string{text}
	if e.Guard != nil {
		pieces = e.Guard(text)
	}
	blocks := make([]sdk.ContentBlock, len(pieces))
	for i, piece := range pieces {
		blocks[i] = sdk.TextBlock(piece)
	}
	return blocks
}

// Steer is not possible: a second message would cancel the first.
func (e *Engine) Steer(context.Context, string) error { return engine.ErrUnsupported }

// Interrupt ends the turn and its tools.
func (e *Engine) Interrupt(ctx context.Context) error {
	e.mu.Lock()
	if !e.running {
		e.mu.Unlock()
		return nil
	}
	e.interrupted = true
	params := sdk.CancelNotification{SessionId: sdk.SessionId(e.sessionID)}
	e.mu.Unlock()
	err := e.notify(ctx, sdk.AgentMethodSessionCancel, params)
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
