// Command stub is the smallest agent: it reads its prompt, answers and exits.
// With arguments it answers as the Codex CLI does.
package main

import (
	"io"
	"os"
)

const codex = `{"type":"thread.started","thread_id":"01a1fb6c-c589-76b2-9a6b-d8f76317e17e"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":1010,"cached_input_tokens":100,"output_tokens":50,"reasoning_output_tokens":7}}
`

func main() {
	io.Copy(io.Discard, os.Stdin)
	answer := "text:done\nok:\n"
	if len(os.Args) > 1 {
		answer = codex
	}
	os.Stdout.WriteString(answer)
}
