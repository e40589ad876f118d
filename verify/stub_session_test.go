package verify_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// stubSessions returns the description of the stub's sessions.
func stubSessions() *registry.Session {
	return &registry.Session{
		Use: registry.Use{
			Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true, AppendSystemPrompt: true, MCPServers: true, AllowTools: true, DenyTools: true, Attachments: agent.ImageTypes()},
			Prepare: stubPrepare,
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Args: []string{"serve", inv.Model, string(inv.Access), fmt.Sprint(inv.TrustWorkspace), inv.AppendSystemPrompt, serversOf(inv), toolsArgument(inv)}}, nil
			},
		},
		Engine:   func(registry.Invocation) engine.Engine { return &acp.Engine{} },
		Protocol: "ACP",
	}
}

// A stubServer is the stub in a session: it speaks the Agent Client Protocol.
type stubServer struct {
	stub
	model, access string

	mu        sync.Mutex // for all below
	out       *json.Encoder
	session   string
	turns     []turn
	interrupt context.CancelFunc // of the running turn
	asked     int                // approval requests
	answers   map[int]chan bool  // to approval requests, by their IDs
}

type stubMessage struct {
	ID     any    `json:"id,omitempty"`
	Method string `json:"method,omitempty"`
	Params any    `json:"params,omitempty"`
	Result any    `json:"result,omitempty"`
	Error  any    `json:"error,omitempty"`

	// Of the client.
	in struct {
		SessionID string
		Prompt    []struct {
			Text string
			Data []byte
		}
		Outcome struct{ OptionID string }
	}
}

// declined is the result of a tool call that was declined.
const declined = "declined"

type fields = map[string]any

func (s *stubServer) send(m stubMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(struct {
		Version string `json:"jsonrpc"`
		stubMessage
	}{"2.0", m}) // the client is gone, and the input ends too
}

// main serves until its input ends.
func (s *stubServer) main() int {
	s.out, s.answers = json.NewEncoder(os.Stdout), map[int]chan bool{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		var m struct {
			ID     any
			Method string
			Params json.RawMessage
			Result json.RawMessage
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return 3
		}
		message := stubMessage{ID: m.ID, Method: m.Method}
		for _, data := range []json.RawMessage{m.Params, m.Result} {
			if len(data) > 0 && json.Unmarshal(data, &message.in) != nil {
				return 3
			}
		}
		s.receive(message)
	}
	return 0
}

func (s *stubServer) receive(m stubMessage) {
	reply := stubMessage{ID: m.ID, Result: fields{}}
	switch m.Method {
	case "":
		s.mu.Lock()
		if n, ok := m.ID.(float64); ok {
			s.answers[int(n)] <- m.in.Outcome.OptionID == "yes"
		}
		s.mu.Unlock()
		return
	case "session/cancel":
		s.interruptTurn()
		return
	case "session/prompt":
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		s.interrupt = cancel
		s.mu.Unlock()
		go s.turn(ctx, m)
		return
	case "initialize":
		reply.Result = fields{"protocolVersion": 1, "agentCapabilities": fields{"loadSession": true, "promptCapabilities": fields{"image": true}}}
	case "session/new":
		s.session = fmt.Sprint("s-", os.Getpid())
		reply.Result = fields{"sessionId": s.session}
	case "session/load":
		s.session = m.in.SessionID
		data, err := os.ReadFile(s.file())
		if err != nil || json.Unmarshal(data, &s.turns) != nil {
			reply.Result, reply.Error = nil, fields{"code": -32002, "message": "no such session"}
		}
	default:
		reply.Result, reply.Error = nil, fields{"code": -32601, "message": "method not found"}
	}
	s.send(reply)
}

func (s *stubServer) interruptTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt()
	}
}

func (s *stubServer) file() string {
	return filepath.Join(os.Getenv("HOME"), ".stub", s.session+".json")
}

// turn answers a prompt.
func (s *stubServer) turn(ctx context.Context, m stubMessage) {
	text := ""
	var images []string
	for _, block := range m.in.Prompt {
		text += block.Text
		if block.Data != nil {
			images = append(images, s.image(block.Data))
		}
	}
	if s.breaks == "session-commands" && strings.HasPrefix(strings.TrimSpace(text), "/") {
		text = "a command"
	}
	if s.breaks == "session-loses" && text == "go right" {
		text = "go left"
	}
	if s.breaks == "repeats-rules" && len(s.turns) > 0 {
		text += "MARKER-OF-THE-ROOT"
	}
	if s.breaks == "session-forgets" {
		s.turns = nil
	}
	s.turns = append(s.turns, turn{Role: "user", Content: text, Images: images})
	stop, over := "end_turn", false
	for ctx.Err() == nil && !over {
		answer, _, _, err := s.ask(s.model, "", s.turns)
		if err != nil {
			s.send(stubMessage{ID: m.ID, Error: fields{"code": -32603, "message": err.Error()}})
			return
		}
		s.turns = append(s.turns, answer)
		if answer.Content != "" {
			s.update(fields{"sessionUpdate": "agent_message_chunk", "content": fields{"type": "text", "text": answer.Content}})
		}
		if len(answer.Calls) == 0 {
			break
		}
		for _, c := range answer.Calls {
			said := ""
			if c.Function.Name == "recall_word" {
				said = s.callServer(c)
			} else {
				said = s.command(ctx, c)
			}
			s.turns = append(s.turns, turn{Role: "tool", CallID: c.ID, Content: said})
			if said == declined && s.breaks == "ends-when-declined" {
				s.interruptTurn()
			}
			over = said == declined && s.breaks == "silent-when-declined"
		}
	}
	if ctx.Err() != nil && s.breaks != "session-denies-end" {
		stop = "cancelled"
	}
	s.save()
	s.send(stubMessage{ID: m.ID, Result: fields{"stopReason": stop}})
}

func (s *stubServer) save() {
	data, err := json.Marshal(s.turns)
	if err == nil && s.breaks != "session-unsaved" {
		err = os.MkdirAll(filepath.Dir(s.file()), 0o700)
		if err == nil {
			err = os.WriteFile(s.file(), data, 0o600)
		}
	}
	if err != nil {
		panic(err) // the home is writable
	}
}

func (s *stubServer) update(update fields) {
	s.send(stubMessage{Method: "session/update", Params: fields{"sessionId": s.session, "update": update}})
}

// command runs a command, after an approval unless access is full.
func (s *stubServer) command(ctx context.Context, c stubCall) string {
	var in struct{ Command string }
	if err := json.Unmarshal([]byte(c.Function.Arguments), &in); err != nil {
		return err.Error()
	}
	call := fields{"toolCallId": c.ID, "title": in.Command, "kind": "execute", "rawInput": fields{"command": in.Command}}
	if s.access != "full" && s.breaks != "session-never-asks" && !s.allowed(call) && s.breaks != "session-runs-declined" {
		return declined
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", in.Command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if s.breaks == "session-leaves-tool" {
			return os.ErrProcessDone
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if s.breaks == "session-leaves-tool" {
		if err := cmd.Start(); err != nil {
			return err.Error()
		}
		<-ctx.Done()
		return "interrupted"
	}
	data, err := cmd.CombinedOutput()
	return fmt.Sprint(string(data), err)
}

// allowed requests an approval of a tool call.
func (s *stubServer) allowed(call fields) bool {
	s.mu.Lock()
	s.asked++
	id, answer := s.asked, make(chan bool, 1)
	s.answers[id] = answer
	s.mu.Unlock()
	s.send(stubMessage{ID: id, Method: "session/request_permission", Params: fields{
		"sessionId": s.session, "toolCall": call,
		"options": []fields{{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}},
	}})
	return <-answer && s.breaks != "session-refuses"
}
