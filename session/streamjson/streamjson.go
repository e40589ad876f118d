// Package streamjson is the engine for agents that take messages as lines of JSON
// on their standard input and answer with the lines that they print in a run, as
// `claude -p --input-format stream-json --output-format stream-json` does.
//
// Besides messages, both sides send control requests: to interrupt, to change the
// model or the access, and for approval. Facts were observed by running Claude
// Code 2.1.329. The agent queues a message sent during a turn and answers it in a
// separate turn, so it cannot be steered.
package streamjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session/engine"
)

// An Engine is an engine.Engine for one agent process.
type Engine struct {
	// Decoder makes the decoder of the agent's lines. Required.
	Decoder func() formatters.Decoder
	// Modes are the agent's names of modes for access, for SetAccess.
	Modes map[agent.Access]string
	// Subject returns the part of a tool's input that identifies the subject of
	// an approval request: two requests with the same part are for the same
	// thing. Nil means the whole input.
	Subject func(tool string, input json.RawMessage) string
	// Edits returns the files that a tool call changes, or nil for a tool that
	// does anything else. An empty name stands for a file that is not known. With
	// write access, the engine accepts the agent's request without asking the user
	// if [engine.Start.MayEdit] permits every file. What the user accepts for the
	// session is accepted for these files, see [engine.Start.Places]. It is for
	// agents whose mode for write access requests an approval for each edit. Nil
	// accepts none.
	Edits func(tool string, input json.RawMessage) []string
	// Describe adds to the tool of an approval request what it would allow: its Kind,
	// Files and Command. Nil adds nothing, so that no policy accepts it.
	Describe func(tool *agent.Tool, start engine.Start)
	// Questions returns the questions that a tool call asks the user, and Answered the
	// input of that call with an answer for each question. Questions returns nil for a
	// tool that does anything else. Nil functions are for agents without such a tool.
	Questions func(tool string, input json.RawMessage) []agent.Question
	Answered  func(input json.RawMessage, answers [][]string) json.RawMessage

	start  engine.Start
	input  *engine.LineWriter
	sink   engine.Sink
	stream *formatters.Stream

	endTools func() // may be nil

	mu        sync.Mutex
	access    agent.Access
	last      int
	waiting   map[string]chan<- *response // by request ID; nil means that there is no answer any more
	approvals engine.Approvals[approval]
	accepted  map[string]bool // for the session, by approval.subject
	closed    bool
	opened    bool
	failure   string // how the agent explains its end before it is opened
	unwanted  int    // turns to come of messages that were given up
	lives     messageLives

	maxLine int      // zero is that of package formatters
	cut     *cutLine // that is read, nil for a whole one
}

// messageLives is what agents tell of their messages that do: which one a turn is
// about. Agents begin turns by themselves, too, as when a command in the background
// has ended.
type messageLives struct {
	ended   bool
	current string        // the message that waits for its result
	begun   string        // the one that was begun last
	changed chan struct{} // closed when either changes; nil while nothing waits for it
}

// change notifies those who wait for a change.
func (l *messageLives) change() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// mine reports whether a result is that of the current message, which then waits
// no longer.
func (l *messageLives) mine() bool {
	if l.current == "" || l.begun != l.current {
		return false
	}
	l.current = ""
	l.change()
	return true
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Attacher   = (*Engine)(nil)
	_ engine.Adjuster   = (*Engine)(nil)
	_ engine.Questioner = (*Engine)(nil)
)

// response answers a control request.
type response struct {
	Subtype   string          `json:"subtype"` // success or error
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// control is a line that is not an event.
type control struct {
	Type      string       `json:"type"`
	RequestID string       `json:"request_id"`
	Request   agentRequest `json:"request"`
	Response  response     `json:"response"`

	MessageID string `json:"command_uuid"` // command_lifecycle
	State     string `json:"state"`
}

// errClosed is the error of requests that the agent has not answered at its end.
var errClosed = errors.New("the agent's output has ended")

// Open waits until the agent is ready. The ID of a new session comes with its
// first turn.
func (e *Engine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input, e.sink, e.endTools = engine.NewLineWriter(t.Input), sink, t.EndTools
	e.start, e.access = start, start.Access
	e.waiting, e.accepted = map[string]chan<- *response{}, map[string]bool{}
	e.stream = formatters.NewStream(e.Decoder(), func(event *agent.Event) error {
		e.event(event)
		return nil
	})
	go e.read(t.Output)
	hello, err := e.request(ctx, clientRequest{Subtype: "initialize"})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened = true
	if errors.Is(err, errClosed) && e.failure != "" {
		err = errors.New(e.failure)
	}
	return engine.Info{SessionID: start.Resume, Models: modelsIn(hello)}, err
}

// modelsIn returns the models that the answer of the agent to its greeting lists.
func modelsIn(hello json.RawMessage) (models []engine.Model) {
	var list struct {
		Models []struct {
			Value       string `json:"value"`
			Name        string `json:"displayName"`
			Description string `json:"description"`
		} `json:"models"`
	}
	if json.Unmarshal(hello, &list) != nil {
		return nil
	}
	for _, m := range list.Models[:min(len(list.Models), engine.MaxModels)] {
		if m.Value != "" {
			models = append(models, engine.Model{ID: m.Value, Name: m.Name, Description: m.Description})
		}
	}
	return models
}

// read passes on what the agent says until its output ends.
func (e *Engine) read(output io.Reader) {
	lines := formatters.Lines{Max: e.maxLine, Handle: func(line []byte, truncated bool, size int64) error {
		e.line(line, truncated, size)
		return nil
	}}
	_, err := io.Copy(&lines, output)
	lines.Close() // it cannot fail, because Handle does not
	e.mu.Lock()
	e.closed = true
	for _, reply := range e.waiting {
		reply <- nil
	}
	clear(e.waiting)
	e.lives.change()
	e.mu.Unlock()
	e.sink.Closed(err)
}

// line takes a line, or the head of one.
func (e *Engine) line(line []byte, truncated bool, size int64) {
	if e.cut = cutOf(line, truncated, size); e.cut != nil {
		line = e.cut.mended
	}
	if e.control(line) {
		return
	}
	e.stream.Write(line) // it cannot fail, because its callback does not
	e.stream.Write([]byte{'\n'})
}

// event passes an event on, but not the end of a turn that was given up.
func (e *Engine) event(event *agent.Event) {
	if e.cut != nil {
		e.cut.Mark(event, e.cut.judged)
	}
	if event.Kind == agent.KindResult && event.Subagent == "" {
		e.mu.Lock()
		if !e.opened && event.Failed {
			e.failure = event.Text
		}
		unwanted := e.unwanted > 0
		switch {
		case e.lives.ended:
			unwanted = !e.lives.mine()
		case unwanted:
			e.unwanted--
		}
		e.mu.Unlock()
		e.declineAll()
		if unwanted {
			event = &agent.Event{Kind: agent.KindHeartbeat}
		}
	}
	e.sink.Event(event)
}

// control takes a line that is not an event and reports whether it was one.
func (e *Engine) control(line []byte) bool {
	if !bytes.Contains(line, []byte(`"control_`)) && !bytes.Contains(line, []byte(`"command_lifecycle"`)) {
		return false
	}
	var c control
	if json.Unmarshal(line, &c) != nil {
		return false
	}
	switch c.Type {
	case "control_response":
		e.mu.Lock()
		reply := e.waiting[c.Response.RequestID]
		delete(e.waiting, c.Response.RequestID)
		e.mu.Unlock()
		if reply != nil { // else it comes twice, or after its time
			reply <- &c.Response
		}
	case "control_cancel_request":
		if id, open := e.approvals.Withdraw(c.RequestID); open {
			e.sink.Answered(id)
		}
	case "control_request":
		e.asked(&c)
	case "command_lifecycle":
		e.mu.Lock()
		e.lives.ended = true
		if c.State == "started" {
			e.lives.begun = c.MessageID
			e.lives.change()
		}
		e.mu.Unlock()
		e.sink.Event(&agent.Event{Kind: agent.KindHeartbeat})
	default:
		return false
	}
	return true
}

type controlResponse struct {
	Type     string   `json:"type"`
	Response response `json:"response"`
}

type controlRequest struct {
	Type      string        `json:"type"`
	RequestID string        `json:"request_id"`
	Request   clientRequest `json:"request"`
}

type clientRequest struct {
	Subtype string `json:"subtype"`
	Model   string `json:"model,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// request sends a control request and returns its answer.
func (e *Engine) request(ctx context.Context, what clientRequest) (json.RawMessage, error) {
	reply := make(chan *response, 1)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	e.last++
	id := "bus-" + strconv.Itoa(e.last)
	e.waiting[id] = reply
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
	}()
	line, err := json.Marshal(controlRequest{"control_request", id, what})
	if err != nil {
		return nil, err
	}
	if _, err := e.input.Write(ctx, line); err != nil {
		return nil, err
	}
	select {
	case r := <-reply:
		switch {
		case r == nil:
			return nil, errClosed
		case r.Subtype != "success":
			return nil, fmt.Errorf("the agent refuses: %s", r.Error)
		}
		return r.Response, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// block and message are what the user says.
type block struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"` // of an image or a document
}

// source is the content of a file.
type source struct {
	Type      string `json:"type"` // always "base64"
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type userLine struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
	ID      string  `json:"uuid"`
}

// Message returns a message of the user as the line that the agent reads, without its
// line break: the files, and the text after them.
func Message(text string, files []agent.Attachment) ([]byte, error) {
	line, _, err := newMessage(text, files)
	return line, err
}

// newMessage returns a message and its ID. An agent takes a message whose ID it knows for
// one that comes twice, also when it resumes a session.
func newMessage(text string, files []agent.Attachment) (line []byte, id string, err error) {
	var blocks []block
	for _, file := range files {
		kind := "image"
		if file.MediaType() == agent.MediaPDF {
			kind = "document"
		}
		blocks = append(blocks, block{Type: kind, Source: &source{"base64", file.MediaType(), file.Data}})
	}
	blocks = append(blocks, block{Type: "text", Text: text})
	id = engine.NewUUID()
	line, err = json.Marshal(userLine{"user", message{"user", blocks}, id})
	return line, id, err
}

// Send begins a turn.
func (e *Engine) Send(ctx context.Context, text string) error { return e.SendAttached(ctx, text, nil) }

// SendAttached is Send for a message with files.
func (e *Engine) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	line, id, err := newMessage(text, files)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.lives.current = id
	e.mu.Unlock()
	begun, err := e.input.Write(ctx, line)
	if err != nil {
		e.mu.Lock()
		e.lives.current = ""
		if begun { // the agent can still get it, and answers in order
			e.unwanted++
		}
		e.mu.Unlock()
	}
	return err
}

// Steer returns ErrUnsupported.
func (e *Engine) Steer(context.Context, string) error { return engine.ErrUnsupported }

// Interrupt ends the turn and its tools, including tools that the agent fails to end.
// If the agent reports the message as still queued, it has not interrupted the turn;
// the engine repeats the request once the turn has begun.
func (e *Engine) Interrupt(ctx context.Context) error {
	e.mu.Lock()
	message := e.lives.current
	e.mu.Unlock()
	for {
		e.mu.Lock()
		begun := e.lives.begun == message
		e.mu.Unlock()
		answer, err := e.request(ctx, clientRequest{Subtype: "interrupt"})
		if e.endTools != nil {
			e.endTools()
		}
		var queued struct {
			Messages []string `json:"still_queued"`
		}
		if err != nil || begun || json.Unmarshal(answer, &queued) != nil || !slices.Contains(queued.Messages, message) {
			return err
		}
		if running, err := e.waitBegun(ctx, message); !running {
			return err
		}
	}
}

// waitBegun waits until the agent has begun a message and reports whether it waits for
// its result then.
func (e *Engine) waitBegun(ctx context.Context, message string) (bool, error) {
	for {
		e.mu.Lock()
		l := &e.lives
		running := l.current == message && !e.closed
		if !running || l.begun == message {
			e.mu.Unlock()
			return running, nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// SetModel sets the model of the following turns.
func (e *Engine) SetModel(ctx context.Context, model string) error {
	_, err := e.request(ctx, clientRequest{Subtype: "set_model", Model: model})
	return err
}

// SetAccess sets what the agent may do from now on.
func (e *Engine) SetAccess(ctx context.Context, access agent.Access) error {
	mode, ok := e.Modes[access]
	if !ok {
		return engine.ErrUnsupported
	}
	_, err := e.request(ctx, clientRequest{Subtype: "set_permission_mode", Mode: mode})
	if err == nil {
		e.mu.Lock()
		e.access = access
		e.mu.Unlock()
	}
	return err
}

// Close ends the agent's input, which makes it exit after its turn.
func (e *Engine) Close() error { return e.input.Close() }
