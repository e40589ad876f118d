package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session/engine"
)

// An RPCError is the server's refusal of a request.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Codes of errors.
const (
	codeOverloaded     = -32001
	codeMethodNotFound = -32601
)

var (
	// errClosed is the error of requests that the server does not answer any more.
	errClosed = errors.New("the server's output has ended")
	// errCut is the error of requests whose answer cannot be read.
	errCut = errors.New("the server's answer is too long to be read")
)

// message is a line in either direction.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`

	cut bool // it is the head of one
}

// refusal returns the error of an answer, nil for a result. What the server says
// in another form than it should is an error as well.
func (m *message) refusal() error {
	if m.cut && m.Result == nil && m.Error == nil {
		return errCut
	}
	if m.Error == nil || string(m.Error) == "null" {
		return nil
	}
	refused := &RPCError{}
	if json.Unmarshal(m.Error, refused) != nil {
		refused = &RPCError{Message: string(m.Error)}
	}
	return refused
}

// conn exchanges messages with the server.
type conn struct {
	input *engine.LineWriter

	mu      sync.Mutex
	last    int64                     // ID of a request of ours
	waiting map[string]func(*message) // by ID; nil means that there is no answer any more
	closed  bool

	maxLine int // zero is that of package formatters
}

// A handler takes what the server says by itself, on one goroutine.
type handler interface {
	notification(method string, params json.RawMessage)
	// request takes a question, which is answered with reply or refuse.
	request(id json.RawMessage, method string, params json.RawMessage)
	// decline answers a question that cannot be read.
	decline(id json.RawMessage, method string)
	// unknown takes a line that is no message, or the head of one that is too
	// long.
	unknown(line []byte, truncated bool, size int64)
}

func newConn(input io.WriteCloser) *conn {
	return &conn{input: engine.NewLineWriter(input), waiting: map[string]func(*message){}}
}

// read hands the server's messages over until its output ends, and returns what
// was wrong with it, if anything.
func (c *conn) read(output io.Reader, h handler) error {
	lines := formatters.Lines{Max: c.maxLine, Handle: func(line []byte, truncated bool, size int64) error {
		var m message
		if len(line) == 0 {
			return nil
		}
		if truncated || json.Unmarshal(line, &m) != nil {
			h.unknown(line, truncated, size)
			c.cut(line, h)
			return nil
		}
		c.dispatch(m, line, h)
		return nil
	}}
	_, err := io.Copy(&lines, output)
	lines.Close() // it cannot fail, because Handle does not
	c.mu.Lock()
	c.closed = true
	unanswered := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, answered := range unanswered {
		answered(nil)
	}
	return err
}

func (c *conn) dispatch(m message, line []byte, h handler) {
	if string(m.ID) == "null" {
		m.ID = nil
	}
	switch {
	case m.Method != "" && m.ID != nil:
		h.request(m.ID, m.Method, m.Params)
	case m.Method != "":
		h.notification(m.Method, m.Params)
	case m.ID != nil:
		c.answered(&m)
	default:
		h.unknown(line, false, 0)
	}
}

func (c *conn) answered(m *message) {
	c.mu.Lock()
	answered := c.waiting[string(m.ID)]
	delete(c.waiting, string(m.ID))
	c.mu.Unlock()
	if answered != nil { // an answer that comes twice, or that nobody asked for, is no news
		answered(m)
	}
}

// cut does what a line asks for of which only the head can be read, so that
// nobody waits for ever: the server for an answer, or a request for its own.
func (c *conn) cut(head []byte, h handler) {
	m, ok := mended(head)
	switch {
	case !ok || m.ID == nil:
	case m.Method != "":
		h.decline(m.ID, m.Method)
	default:
		c.answered(&m)
	}
}

// mended returns what the head of a message says.
func mended(head []byte) (m message, ok bool) {
	m.cut = true
	ok = json.Unmarshal(formatters.Mend(head), &m) == nil
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m, ok
}

// write writes one message.
func (c *conn) write(ctx context.Context, m message) (begun bool, err error) {
	line, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	return c.input.Write(ctx, line)
}

func (c *conn) notify(ctx context.Context, method string) error {
	_, err := c.write(ctx, message{Method: method})
	return err
}

// reply answers a question of the server.
func (c *conn) reply(ctx context.Context, id, result json.RawMessage) error {
	_, err := c.write(ctx, message{ID: id, Result: result})
	return err
}

// post sends a message that nobody waits for.
func (c *conn) post(m message) {
	if line, err := json.Marshal(m); err == nil {
		_ = c.input.Post(line) // a server that does not read goes without
	}
}

// refuse answers a question that is not understood.
func (c *conn) refuse(id json.RawMessage, method string) {
	text, err := json.Marshal(RPCError{Code: codeMethodNotFound, Message: "not supported by this client: " + method})
	if err == nil {
		c.post(message{ID: id, Error: text})
	}
}

// Bounds of the retries of a server that is overloaded.
const (
	maxAttempts = 8
	firstPause  = 50 * time.Millisecond
)

// call sends a request and returns the answer, which is a result. It tries again
// for about ten seconds while the server says that it is overloaded. A result is
// given to first, which may be nil, on the goroutine that reads, before what
// follows it, also when the caller has given up.
func (c *conn) call(ctx context.Context, method string, params json.RawMessage, first func(result json.RawMessage)) (*message, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		answer, err := c.callOnce(ctx, method, params, first)
		var refused *RPCError
		if !errors.As(err, &refused) || refused.Code != codeOverloaded || attempt == maxAttempts {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause + rand.N(pause)): // not all at the same time
		}
		pause *= 2
	}
}

func (c *conn) callOnce(ctx context.Context, method string, params json.RawMessage, first func(json.RawMessage)) (*message, error) {
	reply := make(chan *message, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.last++
	id := string(requestID(c.last))
	c.waiting[id] = func(m *message) {
		if m != nil && first != nil && m.refusal() == nil {
			first(m.Result)
		}
		reply <- m
	}
	c.mu.Unlock()
	begun, err := c.write(ctx, message{ID: json.RawMessage(id), Method: method, Params: params})
	if err == nil {
		select {
		case m := <-reply:
			if m == nil {
				return nil, errClosed
			}
			return m, m.refusal()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !begun || first == nil {
		delete(c.waiting, id)
	}
	return nil, err
}

func requestID(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// nextID returns the ID of a request whose answer is of no interest.
func (c *conn) nextID() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return requestID(c.last)
}
