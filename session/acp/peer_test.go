package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// message is a line in either direction.
type message struct {
	ID     *json.RawMessage `json:"id"`
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
	Result json.RawMessage  `json:"result"`
	Error  json.RawMessage  `json:"error"`
}

// peer is the agent's side of a transport.
type peer struct {
	t     *testing.T
	input *bufio.Scanner
	in    *io.PipeReader
	out   *io.PipeWriter
}

// newPeer returns the two sides of a transport.
func newPeer(t *testing.T) (*peer, engine.Transport) {
	fromEngine, input := io.Pipe()
	output, toEngine := io.Pipe()
	lines := bufio.NewScanner(fromEngine)
	lines.Buffer(nil, 1<<20)
	return &peer{t, lines, fromEngine, toEngine}, engine.Transport{Input: input, Output: output}
}

// next returns the next message of the engine, false after the last one.
func (p *peer) next() (message, bool) {
	var m message
	if !p.input.Scan() {
		return m, false
	}
	if err := json.Unmarshal(p.input.Bytes(), &m); err != nil {
		p.t.Errorf("the engine writes %s: %v", p.input.Bytes(), err)
	}
	return m, true
}

// expect returns the next message, which is of a method.
func (p *peer) expect(method string) message {
	m, ok := p.next()
	if !ok || m.Method != method {
		p.t.Errorf("the engine says %s %s, %v, not %s", m.Method, m.Params, ok, method)
	}
	return m
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// answer answers a request.
func (p *peer) answer(m message, result string) {
	id := "0"
	if m.ID != nil {
		id = string(*m.ID)
	}
	p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// refuse answers a request with an error.
func (p *peer) refuse(m message, code int, text string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, *m.ID, code, text)
}

// update says an update of session s.
func (p *peer) update(update string) {
	p.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`, update)
}

// chunk says a piece of a message of session s.
func (p *peer) chunk(text string) {
	p.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// ask asks for permission for a tool.
func (p *peer) ask(id int, tool string) {
	p.say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","options":[`+
		`{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"o","name":"O","kind":"allow_once"},{"optionId":"r","name":"R","kind":"reject_once"}],`+
		`"toolCall":{"toolCallId":%q,"title":"ls","kind":"execute"}}}`, id, tool)
}

const greeting = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`

// greet answers until a session is open.
func (p *peer) greet() {
	p.answer(p.expect("initialize"), greeting)
	p.answer(p.expect("session/new"), `{"sessionId":"s"}`)
}

// end ends the agent.
func (p *peer) end() {
	p.in.Close()
	p.out.Close()
}

// record is a sink that keeps what it gets.
type record struct {
	busy     sync.Mutex // one goroutine at a time
	mu       sync.Mutex
	lines    []string
	message  string
	messages map[string]int   // the line of each, by ID
	on       func(agent.Kind) // if not nil, called with each event
	requests chan string
	asked    *agent.Tool // of the last approval request
	// questions, if not nil, is called with those of the agent.
	questions func([]agent.Question)
	closed    chan error
	over      bool
	t         *testing.T
}

func newRecord(t *testing.T) *record {
	return &record{messages: map[string]int{}, requests: make(chan string, 16), closed: make(chan error, 1), t: t}
}

func (r *record) speak() func() {
	if !r.busy.TryLock() {
		r.t.Error("two goroutines call the sink")
		r.busy.Lock()
	}
	r.mu.Lock()
	if r.over {
		r.t.Error("the sink is called after Closed")
	}
	return func() { r.mu.Unlock(); r.busy.Unlock() }
}

func (r *record) Event(e *agent.Event) {
	defer r.speak()()
	if r.on != nil {
		r.on(e.Kind)
	}
	line := string(e.Kind)
	switch e.Kind {
	case agent.KindText, agent.KindThinking:
		if last := len(r.lines) - 1; r.message == line+e.MessageID && last >= 0 && strings.HasPrefix(r.lines[last], line) {
			r.lines[last] += e.Text
			return
		}
		if _, ok := r.messages[line+e.MessageID]; ok {
			r.t.Errorf("message %q continues after something else: %s", e.MessageID, e.Text)
		}
		r.message = line + e.MessageID
		r.messages[r.message] = len(r.lines)
		line += " " + e.Text
	case agent.KindHeartbeat:
		return
	case agent.KindToolCall, agent.KindApproval:
		line += " " + e.ApprovalID
		if e.Delta {
			line += " again"
		}
		if e.Kind == agent.KindApproval {
			r.asked = e.Clone().Tool
		}
		if e.Tool != nil {
			line += fmt.Sprintf(" %s %s %s", e.Tool.ID, e.Tool.Name, e.Tool.Input)
		}
		line += " " + e.Text
	case agent.KindToolResult:
		line += fmt.Sprintf(" %s failed=%v %s", e.Tool.ID, e.Failed, e.Tool.Output)
	case agent.KindSessionStarted:
		line += " " + e.SessionID + " " + e.Model
	case agent.KindUsage:
		line += fmt.Sprintf(" %d %d", e.Usage.Input, e.Usage.Output)
		if u := e.Usage; u.Cached+u.Reasoning > 0 {
			line += fmt.Sprintf(" (%d %d)", u.Cached, u.Reasoning)
		}
		if u := e.Usage; u.ContextSize > 0 {
			line += fmt.Sprintf(" context %d/%d", u.Context, u.ContextSize)
		}
		if e.Usage.CostUSD != nil {
			line += fmt.Sprintf(" $%g", *e.Usage.CostUSD)
		}
	case agent.KindQuestion:
		line += fmt.Sprint(" ", e.ApprovalID, " ", e.Text, " ", e.Questions)
		if r.questions != nil {
			r.questions(e.Clone().Questions)
		}
	case agent.KindPlan:
		line += fmt.Sprint(" ", e.Plan)
	case agent.KindFileChange:
		for _, c := range e.Changes {
			line += fmt.Sprintf(" %s %s", c.Action, c.Path)
		}
	case agent.KindResult:
		if e.Failed {
			line += " failed"
		}
		if e.Interrupted {
			line += " interrupted"
		}
		line += " " + string(e.Failure) + " " + e.Text
	case agent.KindRaw:
		line += " " + e.Text[:min(len(e.Text), 60)]
	default:
		line += " " + e.Text
	}
	r.lines = append(r.lines, line)
	if e.Kind == agent.KindApproval || e.Kind == agent.KindQuestion {
		r.requests <- e.ApprovalID
	}
}

func (r *record) Answered(id string) {
	defer r.speak()()
	r.lines = append(r.lines, "answered "+id)
}

func (r *record) Closed(err error) {
	unlock := r.speak()
	r.over = true
	unlock()
	r.closed <- err
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, len(r.lines))
	for i, line := range r.lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// open opens an engine on a peer that answers as it should.
func open(t *testing.T, e *acp.Engine, start engine.Start) (*peer, *record) {
	p, transport := newPeer(t)
	r := newRecord(t)
	go p.greet()
	if _, err := e.Open(t.Context(), transport, start, r); err != nil {
		t.Fatal(err)
	}
	return p, r
}

// send begins a turn and returns the prompt that came of it.
func send(t *testing.T, e *acp.Engine, p *peer, text string) message {
	t.Helper()
	sent := make(chan error)
	go func() { sent <- e.Send(context.Background(), text) }()
	m := p.expect("session/prompt")
	if err := <-sent; err != nil {
		t.Error(err)
	}
	return m
}
