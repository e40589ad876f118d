//go:build linux || darwin

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/streamjson"
)

// A protocol is one of those in which sessions are held.
type protocol struct {
	name   string
	engine func(registry.Invocation) engine.Engine
	// What the engine writes: its greeting, whose lines are answered by one each,
	// and a message. Lines without an answer are left out.
	greeting []string
	message  string
	end      string // is in the last line of a turn
}

// hello is in the line that the stub says first of all that are events.
const hello = `"hello"`

var protocols = []protocol{
	{
		name:   "appserver",
		engine: func(registry.Invocation) engine.Engine { return &appserver.Engine{} },
		greeting: []string{
			`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"","version":""}}}`,
			`{"id":2,"method":"thread/start","params":{"cwd":"/","sandbox":"workspace-write","approvalPolicy":"on-request"}}`,
		},
		message: `{"id":3,"method":"turn/start","params":{"threadId":"t","input":[{"type":"text","text":"do it"}]}}`,
		end:     `"turn/completed"`,
	},
	{
		name: "streamjson",
		engine: func(registry.Invocation) engine.Engine {
			return &streamjson.Engine{Decoder: claude.Runtime().Decoder}
		},
		greeting: []string{`{"type":"control_request","request_id":"bus-1","request":{"subtype":"initialize"}}`},
		message:  `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]},"uuid":"8b0c7cb0-5a4e-4b29-b1c1-21d1ef2b9d36"}`,
		end:      `"type":"result"`,
	},
	{
		name:   "acp",
		engine: func(registry.Invocation) engine.Engine { return &acp.Engine{} },
		greeting: []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
		},
		message: `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"do it"}]}}`,
		end:     `"stopReason"`,
	},
}

func protocolOf(name string) (protocol, error) {
	for _, p := range protocols {
		if p.name == name {
			return p, nil
		}
	}
	return protocol{}, fmt.Errorf("no protocol %q", name)
}

// talking is the argument that makes the stub answer messages.
const talking = "talk"

// runtime is the stub as a runtime of sessions.
func (p protocol) runtime() registry.Runtime {
	rt := stubRuntime()
	rt.Session = &registry.Session{Use: registry.Use{Command: talkCommand}, Engine: p.engine, Protocol: p.name}
	return rt
}

func talkCommand(registry.Invocation) (agent.Command, error) {
	return agent.Command{Args: []string{talking}}, nil
}

// open starts a stub and opens a session with it.
func (p protocol) open(b *bench, o session.Options) (*session.Session, error) {
	r, err := b.runner(p.runtime())
	if err != nil {
		return nil, err
	}
	return r.StartSession(context.Background(), agent.Request{Workdir: b.work}, o)
}

// pipes are the standard input and output of a process.
type pipes struct {
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// connect starts c with pipes.
func connect(c *exec.Cmd) (*pipes, error) {
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &pipes{process: c, input: input, output: bufio.NewReader(output)}, c.Start()
}

func (p *pipes) say(line string) error {
	_, err := io.WriteString(p.input, line+"\n")
	return err
}

// until reads until the line that holds what.
func (p *pipes) until(what string) error {
	for {
		line, err := p.output.ReadSlice('\n')
		if err != nil || bytes.Contains(line, []byte(what)) {
			return err
		}
	}
}

func (p *pipes) close() error {
	if err := p.input.Close(); err != nil {
		return err
	}
	return p.process.Wait()
}

// raw is a conversation with a stub without any library, after the greeting.
func (p protocol) raw(stub, dir string) (*pipes, error) {
	c := exec.Command(stub, talking)
	c.Env, c.Dir = []string{}, dir
	r, err := connect(c)
	if err != nil {
		return nil, err
	}
	for _, line := range p.greeting {
		if err := r.say(line); err != nil {
			return nil, err
		}
		if _, err := r.output.ReadSlice('\n'); err != nil {
			return nil, err
		}
	}
	return r, nil
}
