// Package jsonrpc is a connection to a peer that speaks JSON-RPC 2.0, one message a
// line: to an agent, for engines, or to the client of an agent. Its texts call the peer
// the agent.
package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session/engine"
)

// Codes of errors.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is the refusal of a request.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Errors of requests.
var (
	// ErrClosed: the agent's output has ended without an answer.
	ErrClosed = errors.New("the agent's output has ended")
	// ErrUnreadable: the line with the answer is too long, or was cut.
	ErrUnreadable = errors.New("the agent's answer cannot be read")
)

// A Message is a line in either direction.
type Message struct {
	Version json.RawMessage `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`

	cut bool // only the head of the line is known
}

// Parse reads a message or, if whole is false, as much as the head of a truncated
// line contains. ok is false if line is not a message.
func Parse(line []byte, whole bool) (m Message, ok bool) {
	if m.cut = !whole; m.cut {
		line = formatters.Mend(line)
	}
	err := json.Unmarshal(line, &m)
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, err == nil && (m.ID != nil || m.Method != "")
}

// Decode reads the result of an answer. Without one it returns an [*Error],
// [ErrUnreadable], or [ErrClosed] if m is nil.
func (m *Message) Decode(result any) error {
	_, raw := result.(*json.RawMessage)
	switch refused := (Error{}); {
	case m == nil:
		return ErrClosed
	case m.Error != nil && string(m.Error) != "null":
		if json.Unmarshal(m.Error, &refused) != nil {
			refused = Error{Message: string(m.Error)}
		}
		return &refused
	case m.cut && (m.Result == nil || raw):
		return ErrUnreadable
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("the answer is not understood: %w", err)
	}
	return nil
}

// A Handler receives what the agent sends on its own. Its functions are called by
// the goroutine of [Conn.Read]; their arguments are valid only during the call.
type Handler struct {
	Notification func(m *Message, line []byte)
	// Request receives a request, to be answered by [Conn.Answer], [Conn.Reply] or
	// [Conn.Refuse].
	Request func(m *Message, line []byte)
	// Decline answers a request in a truncated line.
	Decline func(id json.RawMessage, method string)
	// Unknown receives a line that is not a message, or the head of a line that
	// is too long, with the size of the whole line. The readable part of such a
	// line is handled afterwards.
	Unknown func(line []byte, truncated bool, size int64)
}

// A Conn is a connection. Its methods may be called concurrently.
type Conn struct {
	input   *engine.LineWriter
	version json.RawMessage

	mu      sync.Mutex
	last    int64                     // ID of a request
	waiting map[string]func(*Message) // by ID; nil when there are no answers any more
}

// New returns a connection that writes to input. version is the value of the member
// "jsonrpc", empty if the agent uses none.
func New(input io.WriteCloser, version string) *Conn {
	c := &Conn{input: engine.NewLineWriter(input), waiting: map[string]func(*Message){}}
	if version != "" {
		c.version = json.RawMessage(strconv.Quote(version))
	}
	return c
}

// Close closes the agent's input.
func (c *Conn) Close() error { return c.input.Close() }

// Read reads the agent's output to its end, and returns an error if the output
// was not read whole. A line has at most maxLine bytes; zero means the limit of
// package formatters.
func (c *Conn) Read(output io.Reader, maxLine int, h Handler) error {
	lines := formatters.Lines{Max: maxLine, Handle: func(line []byte, truncated bool, size int64) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		m, ok := Parse(line, true)
		if truncated || !ok {
			h.Unknown(line, truncated, size)
			if m, ok = Parse(line, false); !ok {
				return nil
			}
		}
		c.dispatch(&m, line, h)
		return nil
	}}
	_, err := io.Copy(&lines, output)
	lines.Close() // it cannot fail, because Handle does not
	c.mu.Lock()
	unanswered := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, answered := range unanswered {
		answered(nil)
	}
	return err
}

func (c *Conn) dispatch(m *Message, line []byte, h Handler) {
	switch {
	case m.Method == "":
		if answered := c.take(m.ID); answered != nil { // else it comes twice, or too late
			answered(m)
		}
	case m.ID != nil && m.cut:
		h.Decline(m.ID, m.Method)
	case m.ID != nil:
		h.Request(m, line)
	case !m.cut:
		h.Notification(m, line)
	}
}

// take returns what waits for the answer with an ID, nil for nothing.
func (c *Conn) take(id json.RawMessage) func(*Message) {
	whole, rest, _ := bytes.Cut(id, []byte{'.'})
	if len(bytes.Trim(rest, "0")) > 0 {
		whole = id // other agents write 1.0 for 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := c.waiting[string(whole)]
	delete(c.waiting, string(whole))
	return answered
}

// Start sends a request and returns when it is written. The goroutine of [Conn.Read]
// calls answered before it reads the next line: with the answer, or with nil if the
// output ends first. If ctx ends and begun is true, the agent can still receive the
// request, and answered is still called; after other errors it may be called.
func (c *Conn) Start(ctx context.Context, method string, params any, answered func(*Message)) (id json.RawMessage, begun bool, err error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return nil, false, ErrClosed
	}
	c.last++
	id = strconv.AppendInt(nil, c.last, 10)
	c.waiting[string(id)] = answered
	c.mu.Unlock()
	begun, err = c.write(ctx, Message{ID: id, Method: method, Params: encoded})
	if !begun {
		c.take(id)
	}
	return id, begun, err
}

// Call sends a request and returns its result. If read is not nil, the goroutine of
// [Conn.Read] calls it with the result before it reads the next line, even after ctx
// has ended. The error is that of [Message.Decode], of writing, or of ctx.
func Call[T any](ctx context.Context, c *Conn, method string, params any, read func(T)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	answered := make(chan answer, 1)
	id, _, err := c.Start(ctx, method, params, func(m *Message) {
		var a answer
		if a.err = m.Decode(&a.result); a.err == nil && read != nil {
			read(a.result)
		}
		answered <- a
	})
	if err == nil {
		select {
		case a := <-answered:
			return a.result, a.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if read == nil {
		c.take(id)
	}
	var none T
	return none, err
}

// Notify sends a notification and returns when it is written. params may be nil.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	m := Message{Method: method}
	if params != nil {
		encoded, err := json.Marshal(params)
		if err != nil {
			return err
		}
		m.Params = encoded
	}
	_, err := c.write(ctx, m)
	return err
}

// Send sends a request whose answer is not needed, without waiting.
func (c *Conn) Send(method string, params any) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.last++
	id := strconv.AppendInt(nil, c.last, 10)
	c.mu.Unlock()
	c.post(Message{ID: id, Method: method, Params: encoded})
}

// Answer answers a request and returns when the answer is written.
func (c *Conn) Answer(ctx context.Context, id json.RawMessage, result any) error {
	encoded, err := json.Marshal(result)
	if err == nil {
		_, err = c.write(ctx, Message{ID: id, Result: encoded})
	}
	return err
}

// Fail answers a request with an error and returns when the answer is written.
func (c *Conn) Fail(ctx context.Context, id json.RawMessage, e *Error) error {
	encoded, err := json.Marshal(e)
	if err == nil {
		_, err = c.write(ctx, Message{ID: id, Error: encoded})
	}
	return err
}

// Reply answers a request without waiting. An agent that does not read its input gets
// no answer.
func (c *Conn) Reply(id json.RawMessage, result any) {
	if encoded, err := json.Marshal(result); err == nil {
		c.post(Message{ID: id, Result: encoded})
	}
}

// Refuse answers a request with an error, like [Conn.Reply].
func (c *Conn) Refuse(id json.RawMessage, code int, text string) {
	if encoded, err := json.Marshal(Error{Code: code, Message: text}); err == nil {
		c.post(Message{ID: id, Error: encoded})
	}
}

func (c *Conn) write(ctx context.Context, m Message) (begun bool, err error) {
	m.Version = c.version
	line, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	return c.input.Write(ctx, line)
}

func (c *Conn) post(m Message) {
	m.Version = c.version
	if line, err := json.Marshal(m); err == nil {
		_ = c.input.Post(line)
	}
}
