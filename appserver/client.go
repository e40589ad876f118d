package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// A Client is one connection to an App Server. Its methods may be called
// concurrently. A request that the server refuses because of overload is retried
// for about ten seconds; any other refusal is a [*jsonrpc.Error].
type Client struct {
	conn *jsonrpc.Conn
	done chan struct{}
	err  error
}

// ClientInfo is how a client introduces itself.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// A Notification is a message that the server sends on its own.
type Notification struct {
	Method string
	Params json.RawMessage
}

// A Request is an approval request of the server, or questions to the user.
type Request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Methods of the server's requests.
const (
	CommandApproval    = "item/commandExecution/requestApproval"
	FileChangeApproval = "item/fileChange/requestApproval"
	QuestionRequest    = "item/tool/requestUserInput"
)

// Callbacks receive what the server sends on its own. They are called on one
// goroutine, in order. Their arguments are valid only during the call; a call
// that blocks stops the reading.
type Callbacks struct {
	// Notification may be nil.
	Notification func(Notification)
	// Approval receives an approval request, to be answered with [Client.Answer],
	// during the call or later. Nil declines all. Other requests are refused.
	Approval func(Request)
	// Question receives questions to the user, to be answered with
	// [Client.AnswerQuestions], during the call or later. Nil declines all.
	Question func(Request)
	// Unknown receives a line that is not a message, or the head of a line over 16
	// MiB, with the size of the whole line. An approval request in such a line is
	// declined. If it is an answer, the request gets what the head contains, or an
	// error. Unknown may be nil.
	Unknown func(line []byte, truncated bool, size int64)
}

// Connect begins to read the server's output. The handshake is [Client.Initialize].
func Connect(t engine.Transport, callbacks Callbacks) *Client { return connect(t, callbacks, 0) }

// connect takes how long a line may be, in bytes; zero is 16 MiB.
func connect(t engine.Transport, callbacks Callbacks, maxLine int) *Client {
	c := &Client{conn: jsonrpc.New(t.Input, ""), done: make(chan struct{})}
	handler := jsonrpc.Handler{
		Notification: func(m *jsonrpc.Message, _ []byte) {
			if callbacks.Notification != nil {
				callbacks.Notification(Notification{m.Method, m.Params})
			}
		},
		Request: func(m *jsonrpc.Message, _ []byte) {
			callback := callbacks.Approval
			switch m.Method {
			case CommandApproval, FileChangeApproval:
			case QuestionRequest:
				callback = callbacks.Question
			default:
				callback = nil
			}
			if callback == nil {
				c.decline(m.ID, m.Method)
				return
			}
			callback(Request{m.ID, m.Method, m.Params})
		},
		Decline: c.decline,
		Unknown: func(line []byte, truncated bool, size int64) {
			if callbacks.Unknown != nil {
				callbacks.Unknown(line, truncated, size)
			}
		},
	}
	go func() {
		defer close(c.done)
		c.err = c.conn.Read(t.Output, maxLine, handler)
	}()
	return c
}

// decline answers a request of the server without asking the user.
func (c *Client) decline(id json.RawMessage, method string) {
	switch method {
	case CommandApproval, FileChangeApproval:
		c.conn.Reply(id, decision(engine.Decline))
	case QuestionRequest:
		c.conn.Reply(id, declinedQuestions())
	default:
		c.conn.Refuse(id, jsonrpc.CodeMethodNotFound, "not supported by this client: "+method)
	}
}

// Done returns a channel that is closed when the server's output has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns what was wrong with the server's output, once Done is closed.
func (c *Client) Err() error {
	<-c.done
	return c.err
}

// Close closes the server's input.
func (c *Client) Close() error { return c.conn.Close() }

// Call sends any request and returns its result, which must be whole.
func (c *Client) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, method, params, nil)
}

// Bounds of the retries of a request while the server is overloaded.
const (
	codeOverloaded = -32001
	maxAttempts    = 8
	firstPause     = 50 * time.Millisecond
)

// call sends a request and returns its result, which read, if not nil, gets first: see
// [jsonrpc.Call].
func call[R any](ctx context.Context, c *Client, method string, params any, read func(R)) (R, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		result, err := jsonrpc.Call(ctx, c.conn, method, params, read)
		refused, ok := errors.AsType[*jsonrpc.Error](err)
		switch {
		case err == nil:
			return result, nil
		case !ok || refused.Code != codeOverloaded || attempt == maxAttempts:
			return result, fmt.Errorf("%s: %w", method, err)
		}
		select {
		case <-ctx.Done():
			return result, fmt.Errorf("%s: %w", method, context.Cause(ctx))
		case <-time.After(pause + rand.N(pause)): // not all at the same time
		}
		pause *= 2
	}
}

// Initialize does the handshake. It must be the first call.
func (c *Client) Initialize(ctx context.Context, info ClientInfo) error {
	type params struct {
		ClientInfo ClientInfo `json:"clientInfo"`
	}
	if _, err := call[any](ctx, c, "initialize", params{info}, nil); err != nil {
		return err
	}
	return c.conn.Notify(ctx, "initialized", nil)
}

// ThreadParams configure a thread. An empty field means the server's default.
type ThreadParams struct {
	Workdir string `json:"cwd,omitempty"`
	Model   string `json:"model,omitempty"`
	// Sandbox is read-only, workspace-write or danger-full-access. With the last
	// two, Codex 0.169.0 marks a project without a configured trust level as
	// trusted in its home, and runs what the repository configures. To prevent
	// this, start it with -c
	// 'projects={"/the/project"={trust_level="untrusted"}}'.
	Sandbox string `json:"sandbox,omitempty"`
	// ApprovalPolicy is untrusted, on-request or never.
	ApprovalPolicy string `json:"approvalPolicy,omitempty"`
}

// A Thread is a conversation on the server.
type Thread struct {
	ID    string
	Model string
}

// threadReply is an answer of either shape.
type threadReply struct {
	Thread struct {
		ID string `json:"id"`
	} `json:"thread"`
	ThreadID string `json:"threadId"`
	Model    string `json:"model"`
}

func (r threadReply) thread(method string) (Thread, error) {
	t := Thread{ID: cmp.Or(r.Thread.ID, r.ThreadID), Model: r.Model}
	if t.ID == "" {
		return t, fmt.Errorf("%s: the answer names no thread", method)
	}
	return t, nil
}

// StartThread starts a new thread.
func (c *Client) StartThread(ctx context.Context, p ThreadParams) (Thread, error) {
	reply, err := call[threadReply](ctx, c, "thread/start", p, nil)
	if err != nil {
		return Thread{}, err
	}
	return reply.thread("thread/start")
}

// ResumeThread continues a thread stored on disk.
func (c *Client) ResumeThread(ctx context.Context, id string, p ThreadParams) (Thread, error) {
	type params struct {
		ThreadID string `json:"threadId"`
		// The turns of before are not asked for; they can be large.
		ExcludeTurns bool `json:"excludeTurns"`
		ThreadParams
	}
	reply, err := call[threadReply](ctx, c, "thread/resume", params{id, true, p}, nil)
	if err != nil {
		return Thread{}, err
	}
	return reply.thread("thread/resume")
}

// input is a part of a message of the user.
type input struct {
	Type string `json:"type"`           // "text" or "image"
	Text string `json:"text,omitempty"` // of a text
	URL  string `json:"url,omitempty"`  // of an image; "data:" for one that the message has
}

func textInput(text string) []input { return []input{{Type: "text", Text: text}} }

// turnReply is an answer of either shape.
type turnReply struct {
	Turn struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"turn"`
	TurnID string `json:"turnId"`
}

func (r turnReply) id() string { return cmp.Or(r.Turn.ID, r.TurnID) }

// StartTurn sends a message to a thread and returns the ID of the turn that it
// begins.
func (c *Client) StartTurn(ctx context.Context, threadID, text string) (turnID string, err error) {
	return c.startTurn(ctx, threadID, textInput(text), nil)
}

// startTurn gives the ID of the turn to first as soon as it is read, also when
// the caller has given up.
func (c *Client) startTurn(ctx context.Context, threadID string, message []input, first func(turnID string)) (turnID string, err error) {
	type params struct {
		ThreadID string  `json:"threadId"`
		Input    []input `json:"input"`
	}
	reply, err := call(ctx, c, "turn/start", params{threadID, message}, func(reply turnReply) {
		if first != nil && reply.id() != "" {
			first(reply.id())
		}
	})
	if err == nil && reply.id() == "" {
		err = errors.New("turn/start: the answer names no turn")
	}
	return reply.id(), err
}

// SteerTurn adds a message to a turn. If that turn is not running, the
// server refuses with a *jsonrpc.Error.
func (c *Client) SteerTurn(ctx context.Context, threadID, turnID, text string) error {
	type params struct {
		ThreadID       string  `json:"threadId"`
		Input          []input `json:"input"`
		ExpectedTurnID string  `json:"expectedTurnId"`
	}
	_, err := call[any](ctx, c, "turn/steer", params{threadID, textInput(text), turnID}, nil)
	return err
}

// turnParams name a turn.
type turnParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

const interruptMethod = "turn/interrupt"

// InterruptTurn ends a turn. Commands that the turn has started continue, as of
// codex 0.169.0.
func (c *Client) InterruptTurn(ctx context.Context, threadID, turnID string) error {
	_, err := call[any](ctx, c, interruptMethod, turnParams{threadID, turnID}, nil)
	return err
}

// Answer answers an approval request.
func (c *Client) Answer(ctx context.Context, id json.RawMessage, d engine.Decision) error {
	return c.conn.Answer(ctx, id, decision(d))
}

func decision(d engine.Decision) json.RawMessage {
	word := "decline"
	switch d {
	case engine.Accept, engine.Cancel:
		word = string(d)
	case engine.AcceptForSession:
		word = "acceptForSession"
	}
	return json.RawMessage(`{"decision":"` + word + `"}`)
}
