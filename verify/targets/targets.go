// Package targets has the [verify.Target] of each runtime of bus-agent whose CLI can be
// pointed at a scripted model server.
package targets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// key is the API key that the CLIs get. It is not secret: it only opens a scripted
// server.
const key = "sk-verify"

// saved holds the last results of the real CLIs; "make verified" writes it.
//
//go:embed verified.json
var saved []byte

// verified parses saved on first use.
var verified = sync.OnceValue(func() (records []verify.Record) {
	if err := json.Unmarshal(saved, &records); err != nil {
		panic(err) // a test reads it
	}
	return records
})

// record returns the record of the runtime with the given ID, zero if there is none.
func record(id string) (r verify.Record) {
	if i := slices.IndexFunc(verified(), func(r verify.Record) bool { return r.Runtime == id }); i >= 0 {
		r = verified()[i]
	}
	return r
}

// All returns the targets in the order of their IDs.
func All() []verify.Target {
	return []verify.Target{
		Claude(), ClaudeAgentACP(), Cline(), Codex(), CodexACP(), Copilot(), Droid(), Gemini(), OpenCode(), Pi(), Qwen(),
	}
}

// Find returns the target of the runtime with the given ID.
func Find(id string) (verify.Target, bool) {
	for _, t := range All() {
		if t.Runtime == id {
			return t, true
		}
	}
	return verify.Target{}, false
}

// call returns a tool call with the arguments as a JSON object.
func call[A map[string]string | map[string]any](name string, arguments A) modeltest.ToolCall {
	data, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // strings, numbers and truth values always marshal
	}
	return modeltest.ToolCall{Name: name, Arguments: string(data)}
}

// hook returns settings that run a program as a hook, which is a command of the shell.
func hook(program string) string {
	return fmt.Sprintf(`[{"hooks":[{"type":"command","command":%q}]}]`, "'"+program+"'")
}
