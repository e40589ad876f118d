package acpagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// connection is one client.
type connection struct {
	server *Server
	rpc    *jsonrpc.Conn
	ctx    context.Context // ends when the client has gone
	end    context.CancelCauseFunc
	own    *control.Manager // where the server has none
	work   sync.WaitGroup   // requests that are not answered

	mu         sync.Mutex
	closed     bool
	greeted    bool
	notices    bool // the client shows them
	forms      bool // and forms
	sessions   map[string]*conversation
	opening    int                           // sessions that are not in the map yet
	unanswered map[string]context.CancelFunc // by the ID of the request
}

// writer is the output of the server, which stays open.
type writer struct{ io.Writer }

func (writer) Close() error { return nil }

func newConnection(ctx context.Context, s *Server, out io.Writer) *connection {
	c := &connection{
		server: s, rpc: jsonrpc.New(writer{out}, "2.0"), own: &control.Manager{Serve: true},
		sessions: map[string]*conversation{}, unanswered: map[string]context.CancelFunc{},
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	return c
}

// close stops the sessions and returns when everything has ended.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.work.Wait()
	c.stop() // those that were about to open
}

// stop stops the sessions that are open.
func (c *connection) stop() {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	reason := context.Cause(c.ctx).Error()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var stopping sync.WaitGroup
	for _, s := range open {
		stopping.Go(func() { s.stop(ctx, reason) })
	}
	stopping.Wait()
}

// manager returns the manager of a session with the settings s.
func (c *connection) manager(ctx context.Context, s control.Settings) (*control.Manager, error) {
	if c.server.Manager == nil {
		return c.own, nil
	}
	return c.server.Manager(ctx, s)
}

func (c *connection) warn(line string) {
	if c.server.Warn != nil {
		c.server.Warn(line)
	}
}

// read reads what the client sends, to its end.
func (c *connection) read(in io.Reader) error {
	return c.rpc.Read(in, 0, jsonrpc.Handler{
		Notification: c.notification,
		Request:      c.request,
		Decline: func(id json.RawMessage, method string) {
			c.refuse(slices.Clone(id), invalid("the request %s cannot be read: it is not valid JSON, or too long", method))
		},
		Unknown: func(line []byte, truncated bool, size int64) {
			if m, ok := jsonrpc.Parse(line, false); ok && m.ID != nil && m.Method != "" {
				return // it is declined
			}
			e := &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "the message is not valid JSON"}
			switch {
			case truncated:
				e.Message = fmt.Sprintf("the message is too long: %d bytes", size)
			case json.Valid(bytes.TrimSpace(line)):
				e.Code, e.Message = jsonrpc.CodeInvalidRequest, "the message is not a request, a notification or an answer"
			}
			c.refuse(json.RawMessage("null"), e)
		},
	})
}

// send sends something to the client. If the client does not read it, the connection ends.
func (c *connection) send(what func(context.Context) error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, cmp.Or(c.server.ReadTimeout, DefaultReadTimeout), errNotRead)
	defer cancel()
	switch err := what(ctx); {
	case errors.Is(err, jsonrpc.ErrClosed): // the input has ended
		c.end(errGone)
	case err != nil:
		c.end(err)
	}
}

func (c *connection) refuse(id json.RawMessage, e *jsonrpc.Error) {
	c.send(func(ctx context.Context) error { return c.rpc.Fail(ctx, id, e) })
}

// notification takes a notification of the client.
func (c *connection) notification(m *jsonrpc.Message, _ []byte) {
	switch m.Method {
	case methodCancel:
		var p sessionParams
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		if s, err := c.session(p.SessionID); err == nil {
			s.cancel()
		}
	case methodCancelRequest:
		var p cancelParams
		_ = json.Unmarshal(m.Params, &p) // then there is no such request
		c.mu.Lock()
		cancel := c.unanswered[string(p.RequestID)]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
}

// answer is what a request is answered with, and what is done after that. A nil answer
// comes later.
type answer struct {
	result any
	after  func()
}

// request takes a request of the client.
func (c *connection) request(m *jsonrpc.Message, _ []byte) {
	id, params := slices.Clone(m.ID), slices.Clone(m.Params)
	handle := c.handler(m.Method)
	if handle == nil {
		c.refuse(id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown method " + m.Method})
		return
	}
	ctx, cancel, err := c.enter(id, m.Method)
	if err != nil {
		c.refuse(id, failure(err))
		return
	}
	done := func(a answer, err error) {
		defer c.work.Done()
		defer cancel()
		c.leave(id)
		switch {
		case err != nil && ctx.Err() != nil && c.ctx.Err() == nil:
			c.refuse(id, &jsonrpc.Error{Code: codeCancelled, Message: "the request was cancelled"})
		case err != nil:
			c.refuse(id, failure(err))
		default:
			c.send(func(ctx context.Context) error { return c.rpc.Answer(ctx, id, a.result) })
		}
		if err == nil && a.after != nil {
			a.after()
		}
	}
	handle(ctx, params, done)
}

// handler takes the parameters of a request, and calls done once. It returns at once.
type handler func(ctx context.Context, params json.RawMessage, done func(answer, error))

// handler returns what handles a method, nil for an unknown one.
func (c *connection) handler(method string) handler {
	switch method {
	case methodInitialize:
		return c.initialize
	case methodNew:
		return handle(c.newSession)
	case methodLoad:
		return handle(func(ctx context.Context, p sessionParams) (answer, error) { return c.resumeSession(ctx, p, true) })
	case methodResume:
		return handle(func(ctx context.Context, p sessionParams) (answer, error) { return c.resumeSession(ctx, p, false) })
	case methodList:
		return handle(c.list)
	case methodClose:
		return c.closeSession
	case methodPrompt:
		return c.prompt
	case methodSetMode, methodSetModel, methodSetOption:
		return c.set
	}
	return nil
}

// handle returns a handler that calls f on a separate goroutine.
func handle[T interface{ check() error }](f func(context.Context, T) (answer, error)) handler {
	return func(ctx context.Context, params json.RawMessage, done func(answer, error)) {
		var p T
		err := decode(params, &p)
		if err == nil {
			err = p.check()
		}
		if err != nil {
			done(answer{}, err)
			return
		}
		go func() { done(f(ctx, p)) }()
	}
}

// decode reads the parameters of a request.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return invalid("the parameters are not understood: %v", err)
	}
	return nil
}

// enter begins a request, whose context ends with the connection.
func (c *connection) enter(id json.RawMessage, method string) (context.Context, context.CancelFunc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, errGone
	case !c.greeted && method != methodInitialize:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the first request must be initialize"}
	case c.unanswered[string(id)] != nil:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a request with this ID is not answered yet"}
	case len(c.unanswered) >= maxRequests:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many requests are not answered yet"}
	}
	// What is greeted is known before the client can read the answer.
	c.greeted = true
	ctx, cancel := context.WithCancel(c.ctx)
	c.unanswered[string(id)] = cancel
	c.work.Add(1) // before the end, as the connection is not closed
	return ctx, cancel, nil
}

func (c *connection) leave(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unanswered, string(id))
}

// initialize answers at once, so that a client can end its input right after it.
func (c *connection) initialize(ctx context.Context, params json.RawMessage, done func(answer, error)) {
	var p initializeParams
	if err := decode(params, &p); err != nil {
		done(answer{}, err)
		return
	}
	c.mu.Lock()
	c.notices, c.forms = p.Capabilities.Session.Notices != nil, p.Capabilities.Elicitation.Form != nil
	c.mu.Unlock()
	r := initializeResult{ProtocolVersion: protocolVersion, AuthMethods: []empty{}}
	r.Info = implementation{Name: cmp.Or(c.server.Name, "bus-agent"), Version: cmp.Or(c.server.Version, "devel")}
	r.Capabilities.LoadSession = true
	r.Capabilities.Prompt.EmbeddedContext = true
	offered := c.offers(ctx)
	r.Capabilities.Prompt.Image = slices.Contains(offered.Attachments, agent.MediaPNG)
	r.Capabilities.MCP.HTTP, r.Capabilities.MCP.SSE = offered.MCPServers, offered.MCPServers
	done(answer{result: r}, nil)
}

// takes reports whether the client shows notices and forms.
func (c *connection) takes() (notices, forms bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notices, c.forms
}

// invalid returns the error of a request with wrong parameters.
func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// failure returns err as the client gets it, with its kind.
func failure(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
	switch {
	case errors.Is(err, agent.ErrAuthentication):
		e.Code = codeAuthRequired
	case errors.Is(err, control.ErrUnknown), errors.Is(err, errClosed):
		e.Code = codeNotFound
	case errors.Is(err, agent.ErrUsage):
		e.Code = jsonrpc.CodeInvalidParams
	}
	data := map[string]string{"kind": agent.KindOf(err)}
	if failed, ok := errors.AsType[*agent.Error](err); ok && failed.Runtime != "" {
		data["runtime"] = failed.Runtime
	}
	e.Data, _ = json.Marshal(data) // it is text
	return e
}
