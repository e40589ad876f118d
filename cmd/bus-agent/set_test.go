package main

import (
	"os"
	"strings"
	"testing"
)

// Set names what it refuses, stores nothing and shows no secret.
func TestSetRefusesJSON(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "")
	for _, c := range []struct{ name, value, want string }{
		{"mcp", `[]`, "set mcp: it is not of the right type; nothing was stored"},
		{"mcp", `mcp.json`, "set mcp: it is not JSON"},
		{"mcp", `{"mcpServers":{"n":{"url":"https://h/","headers":{"Authorization":"Bearer hidden-value"}}}}`, "are not stored: give each as ${NAME}"},
		{"mcp", `{"mcpServers":{"n":{"command":"ls","env":{"A_TOKEN":"hidden-value"}}}}`, "are not stored: give each as ${NAME}"},
		{"mcp", `{"mcpServers":{"n":{"url":"https://user:hidden-value@h/"}}}`, "are not stored: give each as ${NAME}"},
		{"policy", `[]`, "set policy: it is not of the right type; nothing was stored"},
		{"policy", `policy.json`, "set policy: it is not JSON"},
		{"policy", `{"x":1}`, `set policy: unknown field "x"; nothing was stored`},
		{"hooks", `{}`, "set hooks: it is not of the right type; nothing was stored"},
	} {
		cmd := s.command("set", c.name, c.value)
		output, _ := cmd.CombinedOutput()
		text := string(output)
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || strings.Contains(text, "hidden-value") {
			t.Errorf("set %s %s: exit %d, %q, want %q", c.name, c.value, code, text, c.want)
		}
		if _, err := os.Stat(s.path("preferences.json")); err == nil {
			t.Fatalf("set %s %s: something was stored", c.name, c.value)
		}
	}
	s.exits(0, "set", "mcp", `{"mcpServers":{"n":{"url":"https://user:${PASSWORD}@h/"}}}`)
}
