package targets

import "github.com/busdk/bus-agent/verify"

// CodexACP returns the target of codex-acp, tested with 0.16.0.
func CodexACP() verify.Target {
	t := Codex()
	t.Runtime, t.Verified = "codex-acp", record("codex-acp")
	t.Keeps = []string{".codex"}
	t.Known = map[string]string{"usage": "it reports no tokens"}
	t.Plants, t.Replaces = nil, nil // runs with them are refused; it reads no project instructions
	return t
}
