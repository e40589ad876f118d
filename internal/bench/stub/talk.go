//go:build linux || darwin

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// line is what a client says, in any of the protocols.
type line struct {
	ID        json.RawMessage `json:"id"`
	Method    string          `json:"method"`
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
}

// talk answers messages until the end of its input. What it says is the same for
// all protocols, which tell their own lines apart.
func talk() error {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		text, err := in.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var said line
		if err := json.Unmarshal(text, &said); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString(said.answer()); err != nil {
			return err
		}
	}
}

// answer returns the lines that answer l: to a message a text, "hello", and the
// end of the turn.
func (l *line) answer() string {
	const rpc = `{"jsonrpc":"2.0","id":%s,"result":%s}` + "\n"
	switch l.Method + l.Type {
	case "initialize":
		return fmt.Sprintf(rpc, l.ID, `{"protocolVersion":1}`)
	case "thread/start":
		return fmt.Sprintf(rpc, l.ID, `{"thread":{"id":"t"},"model":"m"}`)
	case "turn/start":
		return fmt.Sprintf(rpc, l.ID, fmt.Sprintf(`{"turn":{"id":"turn-%s"}}`, l.ID)) +
			fmt.Sprintf(`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"turn-%s"}}}`+"\n", l.ID) +
			fmt.Sprintf(`{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"turn-%s","itemId":"a","delta":"hello"}}`+"\n", l.ID) +
			fmt.Sprintf(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"turn-%s","status":"completed"}}}`+"\n", l.ID)
	case "control_request":
		return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`+"\n", l.RequestID)
	case "user":
		return `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hello"}]}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":false,"result":"hello"}` + "\n"
	case "session/new":
		return fmt.Sprintf(rpc, l.ID, `{"sessionId":"s"}`)
	case "session/prompt":
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}` + "\n" +
			fmt.Sprintf(rpc, l.ID, `{"stopReason":"end_turn"}`)
	}
	return ""
}
