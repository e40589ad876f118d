package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// The tool of [ServeTool], and the variable that its result quotes.
const (
	toolName     = "recall_word"
	toolVariable = "VERIFY_TOOL_NOTE"
)

// ServeTool is an MCP server with one tool on its standard streams, for the checks of
// [Options.ToolServer]. It returns when in ends.
func ServeTool(in io.Reader, out io.Writer) error {
	const most = 16 << 20 // bytes of a conversation
	messages, answers := json.NewDecoder(io.LimitReader(in, most)), json.NewEncoder(out)
	for {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string `json:"protocolVersion"`
				Arguments struct {
					Word string `json:"word"`
				} `json:"arguments"`
			} `json:"params"`
		}
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a message: %w", err)
		case m.ID == nil:
			continue // a notification
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		switch m.Method {
		case "initialize":
			reply["result"] = map[string]any{
				"protocolVersion": m.Params.Version,
				"capabilities":    map[string]any{"tools": map[string]any{}},
				"serverInfo":      map[string]string{"name": "verify", "version": "1"},
			}
		case "ping":
			reply["result"] = map[string]any{}
		case "tools/list":
			reply["result"] = map[string]any{"tools": []any{map[string]any{
				"name": toolName, "description": "Recalls a word.",
				"inputSchema": map[string]any{
					"type": "object", "properties": map[string]any{"word": map[string]string{"type": "string"}}, "required": []string{"word"},
				},
			}}}
		case "tools/call":
			text := recalled(m.Params.Arguments.Word, os.Getenv(toolVariable))
			reply["result"] = map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}
		default:
			reply["error"] = map[string]any{"code": -32601, "message": "method not found"}
		}
		if err := answers.Encode(reply); err != nil {
			return err
		}
	}
}

// recalled is the result of the tool: no model says it by itself.
func recalled(word, note string) string {
	letters := []rune(word)
	slices.Reverse(letters)
	return "recalled " + string(letters) + " " + note
}
