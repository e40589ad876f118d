//go:build linux || darwin

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// converse holds a session in lines of JSON: each message is a turn whose answer
// is the message.
func converse(in io.Reader, out io.Writer) error {
	var said struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Message   struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"message"`
	}
	for lines := json.NewDecoder(bufio.NewReader(in)); ; {
		switch err := lines.Decode(&said); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch said.Type {
		case "control_request":
			fmt.Fprintf(out, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`+"\n", said.RequestID)
		case "user":
			text, err := json.Marshal(said.Message.Content[0].Text)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":%s}]},"session_id":"s"}`+"\n", text)
			fmt.Fprintf(out, `{"type":"result","subtype":"success","is_error":false,"result":%s,"session_id":"s"}`+"\n", text)
		}
	}
}
