package stubagent

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// message is a line in either direction.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
	Result any             `json:"result,omitempty"`
	Error  any             `json:"error,omitempty"`
}

// received is a line from the client.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ThreadID string `json:"threadId"`
		TurnID   string `json:"turnId"`
		Expected string `json:"expectedTurnId"`
		Input    []struct {
			Text string `json:"text"`
		} `json:"input"`
	} `json:"params"`
	Result struct {
		Decision string         `json:"decision"`
		Answers  map[string]any `json:"answers"`
	} `json:"result"`
}

type object = map[string]any

// server serves one client and one thread.
type server struct {
	write  sync.Mutex
	output io.Writer

	mu        sync.Mutex
	thread    string
	turns     int // of the thread
	requests  int // of the server
	turn      *turn
	approvals map[string]chan string // decisions, by the ID of the request
}

// serve serves until the end of input and returns the exit code.
func serve(input io.Reader, output io.Writer) int {
	s := &server{output: output, approvals: map[string]chan string{}}
	in := bufio.NewReader(input)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m received
		if json.Unmarshal(text, &m) == nil {
			s.handle(&m)
		}
	}
}

func (s *server) send(m message) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // these values cannot fail
	}
	s.write.Lock()
	defer s.write.Unlock()
	_, _ = s.output.Write(append(text, '\n')) // a client that has gone ends the input too
}

func (s *server) notify(method string, params object) {
	params["threadId"] = s.thread
	s.send(message{Method: method, Params: params})
}

func (s *server) reply(id json.RawMessage, result any) { s.send(message{ID: id, Result: result}) }

func (s *server) refuse(id json.RawMessage, reason string) {
	s.send(message{ID: id, Error: object{"code": -32600, "message": reason}})
}

func (s *server) handle(m *received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case "initialize":
		s.reply(m.ID, object{"userAgent": "stub"})
	case "thread/start":
		s.thread = newUUID()
		s.store()
		s.replyThread(m.ID)
	case "thread/resume":
		s.thread = m.Params.ThreadID
		if !s.load() {
			s.refuse(m.ID, "no rollout found for thread id "+m.Params.ThreadID)
			return
		}
		s.replyThread(m.ID)
	case "turn/start":
		s.begin(m)
	case "turn/steer":
		if s.turn == nil || m.Params.Expected != s.turn.id {
			s.refuse(m.ID, "no active turn to steer")
			return
		}
		if s.turn.late != nil {
			s.turn.refused = append(s.turn.refused, m.ID)
			s.turn.ends()
			return
		}
		s.turn.guidance <- inputOf(m)
		s.reply(m.ID, object{"turnId": s.turn.id})
	case "turn/interrupt":
		if s.turn != nil {
			s.turn.interrupt()
		}
		s.reply(m.ID, object{})
	case "":
		if decided, ok := s.approvals[string(m.ID)]; ok {
			delete(s.approvals, string(m.ID))
			decided <- cmp.Or(m.Result.Decision, strconv.Itoa(len(m.Result.Answers))+" answers")
		}
	default:
		if m.ID != nil {
			s.reply(m.ID, object{})
		}
	}
}

func (s *server) replyThread(id json.RawMessage) {
	s.reply(id, object{"thread": object{"id": s.thread, "model": "stub-1"}, "model": "stub-1"})
}

// begin begins a turn; s.mu is held.
func (s *server) begin(m *received) {
	s.turns++
	s.store()
	ctx, cancel := context.WithCancel(context.Background())
	t := &turn{server: s, id: newUUID(), number: s.turns, interrupt: cancel, guidance: make(chan string, 100)}
	if slices.Contains(stepsOf(inputOf(m)), "late") {
		t.late = make(chan struct{})
	}
	s.turn = t
	s.reply(m.ID, object{"turn": object{"id": t.id, "status": "inProgress"}})
	s.notify("turn/started", object{"turn": object{"id": t.id, "status": "inProgress"}})
	go func() {
		t.play(ctx, inputOf(m))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn = nil
		end := object{"id": t.id, "status": "completed"}
		switch {
		case ctx.Err() != nil:
			end["status"] = "interrupted"
		case t.failure != nil:
			end["status"], end["error"] = "failed", t.failure
		}
		s.notify("turn/completed", object{"turn": end})
		for _, id := range t.refused {
			s.refuse(id, "no active turn to steer")
		}
	}()
}

func inputOf(m *received) (text string) {
	for _, part := range m.Params.Input {
		text += part.Text
	}
	return text
}

// file returns where the number of turns of the thread is kept: in CODEX_HOME, like the
// sessions of Codex.
func (s *server) file() string {
	return filepath.Join(os.Getenv("CODEX_HOME"), "stub-threads", filepath.Base(s.thread))
}

func (s *server) store() {
	if os.Getenv("CODEX_HOME") == "" {
		return
	}
	_ = os.MkdirAll(filepath.Dir(s.file()), 0o700) // a thread that is not stored cannot be resumed
	_ = os.WriteFile(s.file(), []byte(strconv.Itoa(s.turns)), 0o600)
}

func (s *server) load() bool {
	text, err := os.ReadFile(s.file())
	if err != nil {
		return false
	}
	s.turns, err = strconv.Atoi(string(text))
	return err == nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
