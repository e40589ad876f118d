package acpagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// The test binary is also the agent, by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "stub" {
		os.Exit(stub())
	}
	// The first start makes what starts processes from then on.
	if _, err := process.Run(context.Background(), process.Spec{Path: "/bin/sh", Args: []string{"-c", ":"}, Dir: "/"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var code int
	if left := sessiontest.Leaks(func() { code = m.Run() }); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		os.Exit(1)
	}
	os.Exit(code)
}

// order is a line to the stub.
type order struct {
	Prompt    string     `json:"prompt,omitempty"`
	Steer     string     `json:"steer,omitempty"`
	Decision  string     `json:"decision,omitempty"`
	Answers   [][]string `json:"answers,omitempty"`
	Interrupt bool       `json:"interrupt,omitempty"`
	Access    string     `json:"access,omitempty"`
	Model     string     `json:"model,omitempty"`
}

// Kinds of events that the stub acts on.
const (
	kindWait agent.Kind = "wait" // for the next order, which it repeats as a text
	kindDie  agent.Kind = "die"
	kindHang agent.Kind = "hang" // until its input ends, whatever it is asked
)

func say(text string) agent.Event { return agent.Event{Kind: agent.KindText, Text: text} }

func delta(id, text string) agent.Event {
	return agent.Event{Kind: agent.KindText, MessageID: id, Text: text, Delta: true}
}

func failed(failure agent.Failure, text string) agent.Event {
	return agent.Event{Kind: agent.KindResult, Failed: true, Failure: failure, Text: text}
}

var done = agent.Event{Kind: agent.KindResult}

// scripts are what the stub does for a prompt. It repeats other prompts.
var scripts = map[string][]agent.Event{
	"say": {delta("a", "one "), delta("a", "two"), delta("b", "three"), done},
	"think": {{Kind: agent.KindThinking, MessageID: "a", Text: "hm", Delta: true}, delta("a", "yes"),
		{Kind: agent.KindText, Text: "of a subagent", Subagent: "x"}, done},
	"work": {
		{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"ls -l"}`)}},
		{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "1", Output: agent.Plain("a.txt"), ExitCode: new(int)}},
		{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "2", Name: "Edit", Input: json.RawMessage(`{"file_path":"a.txt"}`)}},
		{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "2", Output: agent.Plain("edited")}},
		{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "a.txt", Action: "update", Diff: "@@ -1 +1 @@\n-old\n+new\n"}}},
		{Kind: agent.KindPlan, Plan: []agent.PlanStep{{Text: "test", Status: "in_progress"}}},
		{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 7, Output: 3, Cached: 2, Context: 10, ContextSize: 100}},
		done,
	},
	"patch": { // without a call
		{Kind: agent.KindFileChange, Changes: []agent.FileChange{
			{Path: "/w/new", Action: "add", Diff: "@@ -0,0 +1,2 @@\n+a\n+b\n"},
			{Path: "/w/two", Action: "update", Diff: "@@ -1,2 +1,2 @@\n same\n-x\n+y\n@@ -9 +9 @@\n-p\n\\ No newline at end of file\n+q\n\\ No newline at end of file\n"},
		}},
		{Kind: agent.KindFileChange, Failed: true, Changes: []agent.FileChange{{Path: "/w/gone", Action: "delete"}}},
		done,
	},
	"late": { // the change comes before the result, and one call has none
		{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "3", Name: "edit", Input: json.RawMessage(`{"path":"/w/a"}`)}},
		{Kind: agent.KindToolCall, Delta: true, Tool: &agent.Tool{ID: "3", Name: "edit", Input: json.RawMessage(`{"path":"/w/a","x":1}`)}},
		{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "update", Diff: "@@ -1 +1 @@\n-1\n+2\n"}}},
		{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "3", Output: agent.Plain("ok")}},
		{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "4", Name: "grep", Output: agent.Plain("none")}},
		{Kind: agent.KindApproval, Failed: true, Text: "not allowed", Tool: &agent.Tool{ID: "5", Name: "bash"}},
		{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "6", Name: "other.tool"}},
		done,
	},
	"ask": { // by a tool that is named like one of another kind
		{Kind: agent.KindApproval, ApprovalID: "1", Text: "why not", Tool: &agent.Tool{ID: "t", Name: "search", Kind: agent.ToolExecute, Input: json.RawMessage(`{"command":"rm x"}`)}},
		{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "t", Name: "Bash", Input: json.RawMessage(`{"command":"rm x"}`)}},
		{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t"}},
		{Kind: kindWait}, done,
	},
	"question": {
		{Kind: agent.KindQuestion, ApprovalID: "1", Questions: []agent.Question{
			{Header: "Color", Text: "Which color?", Options: []agent.Option{{Label: "red"}, {Label: "blue"}}},
			{Header: "Name", Text: "Which name?"},
		}},
		{Kind: kindWait}, done,
	},
	"wait":   {say("waiting"), {Kind: kindWait}, done},
	"hang":   {say("hanging"), {Kind: kindHang}},
	"die":    {say("dying"), {Kind: kindDie}},
	"login":  {failed(agent.FailureAuthentication, "log in first")},
	"quota":  {failed(agent.FailureQuota, "no quota")},
	"broken": {failed("", "it is broken")},
	"tokens": {say("too m"), failed(agent.FailureMaxTokens, "the limit")},
	"refuse": {failed(agent.FailureRefusal, "no")},
}

// stub is an agent that writes events as lines of JSON.
func stub() int {
	id := "native-1"
	for _, arg := range os.Args[1:] {
		if rest, ok := strings.CutPrefix(arg, "resume="); ok {
			id = rest
		}
	}
	emit := func(e agent.Event) {
		line, _ := json.Marshal(e)
		fmt.Println(string(line))
	}
	emit(agent.Event{Kind: agent.KindSessionStarted, SessionID: id, Model: "stub-model"})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		if json.Unmarshal(lines.Bytes(), &o) != nil || o.Prompt == "" {
			continue
		}
		script, ok := scripts[o.Prompt]
		if !ok {
			script = []agent.Event{say("echo " + o.Prompt + " " + strings.Join(os.Args[1:], " ")), done}
		}
		for _, e := range script {
			switch e.Kind {
			case kindDie:
				return 3
			case kindHang:
				_, _ = io.Copy(io.Discard, os.Stdin)
			case kindWait:
				lines.Scan()
				if strings.Contains(lines.Text(), "interrupt") {
					emit(agent.Event{Kind: agent.KindResult, Failed: true, Interrupted: true})
				} else {
					emit(say(lines.Text()))
					continue
				}
			default:
				emit(e)
				continue
			}
			break
		}
	}
	return 0
}

// stubEngine speaks with the stub. It can be adjusted and steered.
type stubEngine struct{ stiffEngine }

// stiffEngine does without.
type stiffEngine struct {
	steers bool
	before func(ctx context.Context, call string) error // see bench.before
	ended  chan struct{}                                // closed when the agent has ended
	mu     sync.Mutex
	input  io.WriteCloser
}

// enter begins a call that the agent must answer.
func (e *stiffEngine) enter(ctx context.Context, call string) error {
	if e.before == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return e.before(ctx, call)
}

func (e *stiffEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input, e.ended = t.Input, make(chan struct{})
	opened := make(chan engine.Info, 1)
	go func() {
		defer close(e.ended)
		lines := bufio.NewScanner(t.Output)
		lines.Buffer(nil, formatters.MaxLine)
		for lines.Scan() {
			var event agent.Event
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				continue
			}
			sink.Event(&event)
			if event.Kind == agent.KindSessionStarted {
				opened <- engine.Info{SessionID: event.SessionID, Model: event.Model, Steers: e.steers, Models: []engine.Model{{ID: "small", Name: "Small"}, {ID: "big"}}}
			}
		}
		sink.Closed(lines.Err())
	}()
	select {
	case info := <-opened:
		if start.Resume != "" {
			return info, e.enter(ctx, "resume")
		}
		return info, nil
	case <-e.ended:
		return engine.Info{}, errors.New("it has ended")
	case <-ctx.Done():
		return engine.Info{}, context.Cause(ctx)
	}
}

func (e *stiffEngine) order(o order) error {
	line, err := json.Marshal(o)
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		_, err = e.input.Write(append(line, '\n'))
	}
	return err
}

func (e *stiffEngine) Send(_ context.Context, text string) error { return e.order(order{Prompt: text}) }
func (e *stiffEngine) Steer(ctx context.Context, text string) error {
	if !e.steers {
		return engine.ErrUnsupported
	}
	if err := e.enter(ctx, "steer"); err != nil {
		return err
	}
	return e.order(order{Steer: text})
}
func (e *stiffEngine) Interrupt(context.Context) error { return e.order(order{Interrupt: true}) }
func (e *stiffEngine) Answer(_ context.Context, _ string, d engine.Decision) error {
	if d == engine.Cancel {
		return e.order(order{Interrupt: true})
	}
	return e.order(order{Decision: string(d)})
}
func (e *stiffEngine) AnswerQuestions(_ context.Context, _ string, answers [][]string) error {
	return e.order(order{Answers: answers})
}
func (e *stiffEngine) Close() error { return e.input.Close() }

func (e *stubEngine) SetModel(ctx context.Context, model string) error {
	if err := e.enter(ctx, "set_model"); err != nil {
		return err
	}
	return e.order(order{Model: model})
}
func (e *stubEngine) SetAccess(ctx context.Context, access agent.Access) error {
	if err := e.enter(ctx, "set_access"); err != nil {
		return err
	}
	return e.order(order{Access: string(access)})
}

// SendAttached sends the names of the files after the text.
func (e *stubEngine) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	for _, f := range files {
		text += fmt.Sprintf(" +%s:%d", f.Name, len(f.Data))
	}
	return e.Send(ctx, text)
}

// attachments are what the runtimes take.
var attachments = map[string][]string{"stub": agent.ImageTypes()}

// runtimes returns a registry with the stub, which can do everything, and with one that
// can neither be steered nor adjusted.
func runtimes(b *bench) *registry.Registry {
	b.t.Helper()
	var known registry.Registry
	for id, make := range map[string]func() engine.Engine{
		"stub":  func() engine.Engine { return &stubEngine{stiffEngine{steers: true, before: b.before}} },
		"stiff": func() engine.Engine { return &stiffEngine{before: b.before} },
	} {
		err := known.Register(registry.Runtime{
			ID: id, Name: id, Executables: []string{"stub"}, InstallURL: "https://example.com/",
			Run:     registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
			Decoder: formatters.Generic,
			Session: &registry.Session{
				Use: registry.Use{
					Options: registry.Options{Model: true, Access: agent.Accesses(), Efforts: []agent.ReasoningEffort{agent.EffortLow, agent.EffortHigh}, AddDirs: true, Resume: true, Attachments: attachments[id], MCPServers: id == "stub"},
					Command: func(inv registry.Invocation) (agent.Command, error) {
						args := []string{"access=" + string(inv.Access), "model=" + inv.Model, "effort=" + string(inv.ReasoningEffort)}
						if inv.Resume != "" {
							args = append(args, "resume="+inv.Resume)
						}
						for _, s := range inv.MCPServers {
							args = append(args, fmt.Sprintf("mcp=%+v", s))
						}
						return agent.Command{Args: append(args, inv.AddDirs...)}, nil
					},
				},
				Engine: func(registry.Invocation) engine.Engine { return make() },
			},
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return &known
}
