package targets

import (
	"strings"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// CodexACP returns the target of codex-acp, tested with 2.6.0.
func CodexACP() verify.Target {
	t := Codex()
	t.Runtime, t.Verified = "codex-acp", record("codex-acp")
	t.ServerModel = "" // it offers none that gets the tools of servers at once
	t.Args = nil       // it has none
	t.Home = func(s *modeltest.Server) map[string]string {
		return map[string]string{".codex/config.toml": strings.Join(codexProvider(s), "\n")}
	}
	t.Keeps = []string{".codex"}
	t.Known = map[string]string{
		"prompt-3mb":        "it takes at most 1,048,576 characters",
		"tool-call":         "a call that reads a file has its path in place of the command",
		"write-outside":     "its sandbox lets it write to /tmp",
		"session-mcp":       "Codex 0.166 has the model search for the tools of servers",
		"session-interrupt": "the command of an interrupted turn stays until the end of the session",
	}
	t.Plants, t.Replaces = nil, nil // runs with them are refused; it reads no project instructions
	return t
}
