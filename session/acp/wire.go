package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session/engine"
)

// maxLine is the longest line that is understood, in bytes. The SDK ends the
// connection at 10 MiB.
const maxLine = 8 << 20

// methodCancelRequest is the SDK's own, in both directions.
const methodCancelRequest = "$/cancel_request"

// errClosed is the error of requests that the agent does not answer any more.
var errClosed = errors.New("the agent's output has ended")

// message is a line, as the SDK reads it: what does not fit does not reach it.
type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      *json.RawMessage  `json:"id"`
	Method  string            `json:"method"`
	Params  json.RawMessage   `json:"params"`
	Result  json.RawMessage   `json:"result"`
	Error   *sdk.RequestError `json:"error"`
}

// request is a request of ours, or a notification.
type request struct {
	ctx      context.Context // of writing it
	fail     context.CancelCauseFunc
	id       int64
	begun    bool          // it is on its way to the wire
	sent     chan struct{} // closed when it is written, or cannot be
	err      error         // why it could not
	turn     bool          // it begins one
	late     bool          // it does so for nobody; guarded by the wire
	answered atomic.Bool
	settled  chan struct{} // closed when its answer is dealt with, if there is one
}

func newRequest(ctx context.Context) *request {
	return &request{ctx: ctx, sent: make(chan struct{}), settled: make(chan struct{})}
}

// settle lets what the agent has said after its answer come.
func (r *request) settle() { close(r.settled) }

// inbound is a message of the agent's own.
type inbound struct {
	line []byte
	id   string        // as the agent wrote it
	asks bool          // it wants an answer
	done chan struct{} // closed when it is dealt with
}

// wire stands between the transport and the SDK.
type wire struct {
	input *engine.LineWriter
	lines *io.PipeWriter // to the SDK

	starting sync.Mutex // held until the request that begins is on its way
	next     *request

	mu       sync.Mutex
	open     map[int64]*request
	unwanted int // of those that are late
}

// Write writes a line of the SDK and returns at once: the SDK would let all other
// lines wait, whatever their context says. What is no request of ours is an answer
// to the agent, which nothing waits for.
func (w *wire) Write(line []byte) (int, error) {
	text := bytes.TrimSuffix(line, []byte{'\n'})
	if r := w.started(text); r != nil {
		go w.send(r, text)
		return len(line), nil
	}
	return len(line), w.input.Post(text)
}

// send writes a request.
func (w *wire) send(r *request, text []byte) {
	begun, err := w.input.Write(r.ctx, text)
	if begun && err != nil && r.turn && r.ctx.Err() != nil {
		w.mu.Lock()
		if w.open[r.id] == r {
			r.late = true
			w.unwanted++
		}
		w.mu.Unlock()
	}
	r.err = err
	close(r.sent)
	if err != nil && r.fail != nil {
		r.fail(err)
	}
}

// begin makes r what the SDK writes next.
func (w *wire) begin(r *request) {
	w.starting.Lock()
	w.next = r
}

// started returns what line is of ours, and takes note of the ID that the SDK has
// given it.
func (w *wire) started(line []byte) *request {
	var id int64
	var method string
	reader := jsonline.New(line)
	for m := reader.Object(); method == "" && m.Next(); { // in this order
		switch string(m.Name()) {
		case "id":
			id = reader.Int()
		case "method":
			method = reader.String()
		}
	}
	if method == "" || method == methodCancelRequest {
		return nil
	}
	r := w.next
	r.id, r.begun, w.next = id, true, nil
	if id != 0 {
		w.mu.Lock()
		w.open[id] = r
		w.mu.Unlock()
	}
	w.starting.Unlock()
	return r
}

// end forgets a request, unless it is late.
func (w *wire) end(r *request, err error) {
	if !r.begun {
		w.next = nil
		w.starting.Unlock()
		r.err = err
		close(r.sent)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.late {
		delete(w.open, r.id)
	}
}

// answers returns the request that an answer is for, nil for one that comes
// twice, or after its time.
func (w *wire) answers(id []byte) *request {
	whole, rest, _ := bytes.Cut(id, []byte{'.'}) // some write 1.0
	number, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil || len(bytes.Trim(rest, "0")) > 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.open[number]
	delete(w.open, number)
	if r != nil && r.late {
		w.unwanted--
		return nil
	}
	return r
}

// late reports whether what the agent says can be of a turn that is unwanted.
func (w *wire) late() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unwanted > 0
}

// pass hands a line over to the SDK. It cannot fail: the SDK reads to the end.
func (w *wire) pass(line []byte) {
	w.lines.Write(line)
	w.lines.Write([]byte{'\n'})
}

// call sends a request and returns the answer. The caller settles r.
func call[T any](ctx context.Context, e *Engine, r *request, method string, params any) (T, error) {
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	e.wire.begin(r)
	result, err := sdk.SendRequest[T](e.connection, ctx, method, params)
	e.wire.end(r, err)
	if err == nil {
		return result, nil
	}
	<-r.sent // or given up, as the request is
	switch {
	case r.err != nil:
		return result, r.err
	case r.answered.Load():
		return result, refused(err)
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	}
	return result, errClosed
}

// notify sends a notification.
func (e *Engine) notify(ctx context.Context, method string, params any) error {
	r := newRequest(ctx)
	e.wire.begin(r)
	e.wire.end(r, e.connection.SendNotification(ctx, method, params))
	<-r.sent
	return r.err
}

// read hands over what the agent says until its output ends.
func (e *Engine) read(output io.Reader) {
	lines := formatters.Lines{Max: cmp.Or(e.maxLine, maxLine), Handle: e.line}
	_, err := io.Copy(&lines, output)
	lines.Close() // it cannot fail, because Handle does not
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	_ = e.closeInput() // nobody reads it
	e.wire.lines.Close()
	<-e.connection.Done()
	e.background.Wait()
	e.sink.Closed(err)
}

// line deals with one line.
func (e *Engine) line(line []byte, truncated bool, size int64) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var m message
	switch {
	case truncated || json.Unmarshal(line, &m) != nil || m.ID == nil && m.Method == "":
		e.misread(line, truncated, size)
	case m.Method == "":
		e.answer(*m.ID, line)
	case m.ID == nil && m.Method == methodCancelRequest:
		e.wire.pass(line) // the SDK's own
	default:
		in := &inbound{line: line, asks: m.ID != nil, done: make(chan struct{})}
		if in.asks {
			in.id = string(*m.ID)
		}
		e.inbound = in
		e.wire.pass(line)
		<-in.done
	}
	return nil
}

// answer deals with an answer, or with one that cannot be read if line is nil. The
// SDK gets it with the ID as the SDK wrote it: an answer that the SDK does not match
// with its request would be waited for without end.
func (e *Engine) answer(id, line []byte) {
	r := e.wire.answers(id)
	if r == nil {
		return
	}
	var said struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &said) != nil {
		said.Error = json.RawMessage(`{"code":-32700,"message":"the agent's answer cannot be read"}`)
	}
	line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d`, r.id)
	if said.Result != nil {
		line = append(append(line, `,"result":`...), said.Result...)
	}
	if said.Error != nil {
		line = append(append(line, `,"error":`...), said.Error...)
	}
	line = append(line, '}')
	r.answered.Store(true)
	e.wire.pass(line)
	<-r.settled
}

// misread reports a line that is no message, or of which only the head is there.
// What it asks is refused, and a request that it answers is answered with what the
// head says, or with an error: nothing else will come.
func (e *Engine) misread(line []byte, truncated bool, size int64) {
	head := engine.Head{Line: line, Long: truncated, Size: size}
	e.emit(head.Raw())
	mended := head.Mended()
	var m message
	switch read := json.Unmarshal(mended, &m) == nil && m.ID != nil; {
	case read && m.Method != "":
		e.refuse(*m.ID, m.Method)
	case read && (bytes.HasPrefix(m.Result, []byte("{")) || m.Error != nil):
		e.answer(*m.ID, mended)
	default:
		if id, ok := answered(mended); ok {
			e.answer(id, nil)
		}
	}
}

// answered returns the ID of the request that an object answers whose members are
// of other types than they should be.
func answered(line []byte) (id []byte, ok bool) {
	reader := jsonline.New(line)
	for m := reader.Object(); m.Next(); {
		switch string(m.Name()) {
		case "id":
			id = reader.Raw()
		case "method":
			return nil, false
		}
	}
	return id, id != nil
}

// refuse answers a question that cannot be read.
func (e *Engine) refuse(id json.RawMessage, method string) {
	text := `{"jsonrpc":"2.0","id":` + string(id)
	if method == sdk.ClientMethodSessionRequestPermission {
		text += `,"result":{"outcome":{"outcome":"cancelled"}}}`
	} else {
		text += `,"error":{"code":-32700,"message":"the question cannot be read"}}`
	}
	_ = e.wire.input.Post([]byte(text)) // an agent that does not read goes without
}

// emit passes an event on.
func (e *Engine) emit(event *agent.Event) {
	e.speaking.Lock()
	defer e.speaking.Unlock()
	e.sink.Event(event)
}
