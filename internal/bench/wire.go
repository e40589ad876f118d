//go:build linux || darwin

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A wire is a client of a process that speaks JSON-RPC, a message a line: the Agent Client
// Protocol or the Model Context Protocol. It does as little as a client can.
type wire struct {
	*pipes
	last int // ID of a request
}

// dial starts a process to talk with.
func dial(dir string, env []string, command ...string) (*wire, error) {
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, env
	p, err := connect(c)
	return &wire{pipes: p}, err
}

// call sends a request and waits for its answer. Everything else it reads over.
func (w *wire) call(method string, params, result any) error {
	w.last++
	if err := w.send(map[string]any{"jsonrpc": "2.0", "id": w.last, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := w.output.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("%s: %w: %s", method, err, line)
		}
		switch {
		case m.Method != "" || string(m.ID) != strconv.Itoa(w.last):
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}

func (w *wire) send(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return w.say(string(line))
}

// openACP opens a session of the Agent Client Protocol in the directory of the process,
// and returns what does a turn.
func (w *wire) openACP() (turn func() error, err error) {
	hello := map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}
	if err := w.call("initialize", hello, nil); err != nil {
		return nil, err
	}
	var opened struct {
		SessionID string `json:"sessionId"`
	}
	if err := w.call("session/new", map[string]any{"cwd": w.process.Dir, "mcpServers": []any{}}, &opened); err != nil {
		return nil, err
	}
	message := map[string]any{"sessionId": opened.SessionID, "prompt": []any{map[string]any{"type": "text", "text": prompt}}}
	return func() error {
		var ended struct {
			StopReason string `json:"stopReason"`
		}
		err := w.call("session/prompt", message, &ended)
		if err == nil && ended.StopReason != "end_turn" {
			err = fmt.Errorf("the turn ended with %q", ended.StopReason)
		}
		return err
	}, nil
}

// openMCP greets a server of the Model Context Protocol.
func (w *wire) openMCP() error {
	hello := map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"}}
	if err := w.call("initialize", hello, nil); err != nil {
		return err
	}
	return w.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// tool calls a tool of the server and returns its structured result.
func (w *wire) tool(name string, arguments map[string]any, result any) error {
	var got struct {
		IsError    bool            `json:"isError"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := w.call("tools/call", map[string]any{"name": name, "arguments": arguments}, &got); err != nil {
		return err
	}
	if got.IsError {
		return fmt.Errorf("%s: %s", name, got.Content)
	}
	return json.Unmarshal(got.Structured, result)
}

// memory returns the memory of the process alone: pages that it shares with others count
// in part, and those that no other process has count apart as its private memory. It is
// zero where that is not known.
func (w *wire) memory() (all, private int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", w.process.Process.Pid))
	if err != nil {
		return 0, 0
	}
	of := func(line, name string) int64 {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			kibibytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kibibytes << 10
		}
		return 0
	}
	for line := range strings.Lines(string(text)) {
		all += of(line, "Pss")
		private += of(line, "Pss_Anon")
	}
	return all, private
}
