package appserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/busdk/bus-agent/session/engine"
)

// A Client is one connection to an App Server. Its methods may be called
// concurrently. A request that the server refuses for overload is tried again for
// about ten seconds; any other refusal is an [*RPCError].
type Client struct {
	conn *conn
	done chan struct{}
	err  error
}

// ClientInfo is how a client introduces itself.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// A Notification is what the server says by itself.
type Notification struct {
	Method string
	Params json.RawMessage
}

// A Request is a question of the server.
type Request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Methods of the server's questions for permission.
const (
	CommandApproval    = "item/commandExecution/requestApproval"
	FileChangeApproval = "item/fileChange/requestApproval"
)

// Callbacks take what the server says. They are called on one goroutine, in
// order, with what is valid during the call; one that blocks stops the reading.
type Callbacks struct {
	// Notification may be nil.
	Notification func(Notification)
	// Approval takes a question for permission, which is answered with
	// [Client.Answer], then or later. Nil declines all. Other questions are
	// refused.
	Approval func(Request)
	// Unknown takes a line that is no message; of one over 16 MiB its head, with
	// its size. A question in it is declined, and a request that it answers gets
	// what its head says or an error. It may be nil.
	Unknown func(line []byte, truncated bool, size int64)
}

// Connect begins to read the server's output. The handshake is [Client.Initialize].
func Connect(t engine.Transport, callbacks Callbacks) *Client { return connect(t, callbacks, 0) }

// connect takes how long a line may be, in bytes; zero is 16 MiB.
func connect(t engine.Transport, callbacks Callbacks, maxLine int) *Client {
	c := &Client{conn: newConn(t.Input), done: make(chan struct{})}
	c.conn.maxLine = maxLine
	go func() {
		defer close(c.done)
		c.err = c.conn.read(t.Output, &dispatcher{c, callbacks})
	}()
	return c
}

// Done returns a channel that is closed when the server's output has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns what was wrong with the server's output, once Done is closed.
func (c *Client) Err() error {
	<-c.done
	return c.err
}

// Close tells the server that nothing more will come.
func (c *Client) Close() error { return c.conn.input.Close() }

// dispatcher hands what the server says to the callbacks.
type dispatcher struct {
	client    *Client
	callbacks Callbacks
}

func (d *dispatcher) notification(method string, params json.RawMessage) {
	if d.callbacks.Notification != nil {
		d.callbacks.Notification(Notification{method, params})
	}
}

func (d *dispatcher) request(id json.RawMessage, method string, params json.RawMessage) {
	switch {
	case d.callbacks.Approval != nil && (method == CommandApproval || method == FileChangeApproval):
		d.callbacks.Approval(Request{id, method, params})
	default:
		d.decline(id, method)
	}
}

func (d *dispatcher) decline(id json.RawMessage, method string) {
	if method != CommandApproval && method != FileChangeApproval {
		d.client.conn.refuse(id, method)
		return
	}
	d.client.conn.post(message{ID: id, Result: decision(engine.Decline)})
}

func (d *dispatcher) unknown(line []byte, truncated bool, size int64) {
	if d.callbacks.Unknown != nil {
		d.callbacks.Unknown(line, truncated, size)
	}
}

// Call sends any request and returns its result, which must be whole.
func (c *Client) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answer, err := c.conn.call(ctx, method, params, nil)
	if err != nil {
		return nil, err
	}
	if answer.cut {
		return nil, errCut
	}
	return answer.Result, nil
}

// call sends a request with params, which encoding/json can write, and reads the
// result into result.
func call[P, R any](ctx context.Context, c *Client, method string, params P) (result R, err error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return result, err
	}
	answer, err := c.conn.call(ctx, method, encoded, nil)
	if err != nil {
		return result, fmt.Errorf("%s: %w", method, err)
	}
	if err := json.Unmarshal(answer.Result, &result); err != nil {
		return result, fmt.Errorf("%s: the answer is not understood: %w", method, err)
	}
	return result, nil
}

// Initialize does the handshake, which comes before everything else.
func (c *Client) Initialize(ctx context.Context, info ClientInfo) error {
	type params struct {
		ClientInfo ClientInfo `json:"clientInfo"`
	}
	if _, err := call[params, json.RawMessage](ctx, c, "initialize", params{info}); err != nil {
		return err
	}
	return c.conn.notify(ctx, "initialized")
}

// ThreadParams say how a thread works. What is empty is the server's default.
type ThreadParams struct {
	Workdir string `json:"cwd,omitempty"`
	Model   string `json:"model,omitempty"`
	// Sandbox is read-only, workspace-write or danger-full-access. With the last
	// two, Codex 0.169.0 marks a project in its home as trusted unless it is told
	// what to think of it, and runs what the repository configures; start it with
	// -c 'projects={"/the/project"={trust_level="untrusted"}}'.
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
	t := Thread{ID: r.Thread.ID, Model: r.Model}
	if t.ID == "" {
		t.ID = r.ThreadID
	}
	if t.ID == "" {
		return t, fmt.Errorf("%s: the answer names no thread", method)
	}
	return t, nil
}

// StartThread starts a new thread.
func (c *Client) StartThread(ctx context.Context, p ThreadParams) (Thread, error) {
	reply, err := call[ThreadParams, threadReply](ctx, c, "thread/start", p)
	if err != nil {
		return Thread{}, err
	}
	return reply.thread("thread/start")
}

// ResumeThread goes on with a thread that is stored on disk.
func (c *Client) ResumeThread(ctx context.Context, id string, p ThreadParams) (Thread, error) {
	type params struct {
		ThreadID string `json:"threadId"`
		// The turns of before are not asked for; they can be large.
		ExcludeTurns bool `json:"excludeTurns"`
		ThreadParams
	}
	reply, err := call[params, threadReply](ctx, c, "thread/resume", params{id, true, p})
	if err != nil {
		return Thread{}, err
	}
	return reply.thread("thread/resume")
}

// textInput is a message of the user.
type textInput struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textInputs(text string) []textInput { return []textInput{{"text", text}} }

// turnReply is an answer of either shape.
type turnReply struct {
	Turn struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"turn"`
	TurnID string `json:"turnId"`
}

func (r turnReply) id() string {
	if r.Turn.ID != "" {
		return r.Turn.ID
	}
	return r.TurnID
}

// StartTurn sends a message to a thread and returns the ID of the turn that it
// begins.
func (c *Client) StartTurn(ctx context.Context, threadID, text string) (turnID string, err error) {
	return c.startTurn(ctx, threadID, text, nil)
}

// startTurn gives the ID of the turn to first as soon as it is read, also when
// the caller has given up.
func (c *Client) startTurn(ctx context.Context, threadID, text string, first func(turnID string)) (turnID string, err error) {
	const method = "turn/start"
	params, err := json.Marshal(struct {
		ThreadID string      `json:"threadId"`
		Input    []textInput `json:"input"`
	}{threadID, textInputs(text)})
	if err != nil {
		return "", err
	}
	answer, err := c.conn.call(ctx, method, params, func(result json.RawMessage) {
		var reply turnReply
		if first != nil && json.Unmarshal(result, &reply) == nil && reply.id() != "" {
			first(reply.id())
		}
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", method, err)
	}
	var reply turnReply
	if err := json.Unmarshal(answer.Result, &reply); err != nil {
		return "", fmt.Errorf("%s: the answer is not understood: %w", method, err)
	}
	if reply.id() == "" {
		return "", fmt.Errorf("%s: the answer names no turn", method)
	}
	return reply.id(), nil
}

// SteerTurn adds a message to a turn, which the server refuses with an
// [*RPCError] when another turn is running, or none.
func (c *Client) SteerTurn(ctx context.Context, threadID, turnID, text string) error {
	type params struct {
		ThreadID       string      `json:"threadId"`
		Input          []textInput `json:"input"`
		ExpectedTurnID string      `json:"expectedTurnId"`
	}
	_, err := call[params, json.RawMessage](ctx, c, "turn/steer", params{threadID, textInputs(text), turnID})
	return err
}

// turnParams name a turn.
type turnParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

const interruptMethod = "turn/interrupt"

// InterruptTurn ends a turn. A command that it has started goes on, as of codex
// 0.169.0.
func (c *Client) InterruptTurn(ctx context.Context, threadID, turnID string) error {
	_, err := call[turnParams, json.RawMessage](ctx, c, interruptMethod, turnParams{threadID, turnID})
	return err
}

// abandonTurn ends a turn that nobody wants, without waiting.
func (c *Client) abandonTurn(threadID, turnID string) {
	params, err := json.Marshal(turnParams{threadID, turnID})
	if err != nil {
		return
	}
	c.conn.post(message{ID: c.conn.nextID(), Method: interruptMethod, Params: params})
}

// Answer answers a question for permission.
func (c *Client) Answer(ctx context.Context, id json.RawMessage, d engine.Decision) error {
	return c.conn.reply(ctx, id, decision(d))
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
