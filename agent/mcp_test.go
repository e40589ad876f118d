package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestParseMCPServers(t *testing.T) {
	t.Parallel()
	servers, err := agent.ParseMCPServers([]byte(`{"mcpServers":{
		"b":{"type":"sse","url":"https://example.com","headers":{"X-Key":"k"}},
		"a":{"command":"notes","args":["-x"],"env":{"KEY":"${NOTES}"}},
		"c":{"url":"http://127.0.0.1:1/mcp"}}}`))
	want := []agent.MCPServer{
		{Name: "a", Command: "notes", Args: []string{"-x"}, Env: map[string]string{"KEY": "${NOTES}"}},
		{Name: "b", URL: "https://example.com", Headers: map[string]string{"X-Key": "k"}, SSE: true},
		{Name: "c", URL: "http://127.0.0.1:1/mcp"},
	}
	if diff := cmp.Diff(want, servers); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	again, err := agent.ParseMCPServers(agent.MCPConfig(servers))
	if diff := cmp.Diff(want, again); err != nil || diff != "" {
		t.Errorf("MCPConfig: %v\n%s", err, diff)
	}
}

func TestParseMCPServersIsStrict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                  "not JSON",
		`[]`:                "not of the right type",
		`{"mcpServers":{}}`: "no servers",
		`{"servers":{}}`:    `unknown field "servers"`,
		`{"mcpServers":{"a":{"command":"x"}}} {}`:                     "after top-level value",
		`{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}`:    "repeated",
		`{"mcpServers":{"a":{"command":"x","trust":true}}}`:           `unknown field "trust"`,
		`{"mcpServers":{"a":{}}}`:                                     "needs a command or a url",
		`{"mcpServers":{"a":{"command":"x","url":"https://e"}}}`:      "not both",
		`{"mcpServers":{"a b":{"command":"x"}}}`:                      "its name",
		`{"mcpServers":{"a__b":{"command":"x"}}}`:                     "its name",
		`{"mcpServers":{"a":{"type":"ws","url":"https://e"}}}`:        "is not one of stdio",
		`{"mcpServers":{"a":{"type":"stdio","url":"https://e"}}}`:     "type stdio needs",
		`{"mcpServers":{"a":{"command":"x","headers":{"A":"b"}}}}`:    "for a server with a url",
		`{"mcpServers":{"a":{"command":"x","env":{"A-B":"b"}}}}`:      "not the name of a variable",
		`{"mcpServers":{"a":{"url":"http://e","headers":{":":"b"}}}}`: "not the name of a header",
		`{"mcpServers":{"a":{"command":"x","args":["a\nsecret"]}}}`:   "line break",
		strings.Repeat(" ", agent.MaxMCPBytes+1):                      "the limit is",
	} {
		_, err := agent.ParseMCPServers([]byte(text))
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %v, want a usage error with %q", text, err, want)
		}
	}
}

func TestExpandedMCPServer(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"NOTES": "n$1", "EMPTY": ""}[name]
		return value, ok
	}
	given := agent.MCPServer{Name: "a", Command: "x", Args: []string{"${NOTES}-${OTHER:-o}", "$NOTES"}, Env: map[string]string{"K": "${EMPTY:-x}"}}
	got, err := given.Expanded(lookup)
	want := agent.MCPServer{Name: "a", Command: "x", Args: []string{"n$1-o", "$NOTES"}, Env: map[string]string{"K": ""}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if given.Args[0] != "${NOTES}-${OTHER:-o}" || given.Env["K"] != "${EMPTY:-x}" {
		t.Error("it changed the server")
	}
	for want, s := range map[string]agent.MCPServer{
		"OTHER is not set": {Command: "x", Args: []string{"${OTHER}"}},
		"followed by":      {Command: "x", Args: []string{"${"}},
		"relative path":    {Command: "./x"},
		"url":              {URL: "ftp://example.com"},
		"a host":           {URL: "https:///x"},
	} {
		s.Name = "a"
		if _, err := s.Expanded(lookup); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a usage error with %q", s, err, want)
		}
	}
}

func TestMCPSecrets(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://user:hidden@h/p":     "URL_SECRET=hidden",
		"https://user:a:b@c@h/p?x=@y": "URL_SECRET=a:b@c",
		"https://user@h/":             "",
		"https://h:8080/a:b@c":        "",
		"https://h":                   "",
		"":                            "",
	} {
		if got := strings.Join(agent.MCPSecrets([]agent.MCPServer{{Name: "n", URL: url}}), " "); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	servers := []agent.MCPServer{{Name: "n", Env: map[string]string{"TOKEN": "a"}, Headers: map[string]string{"Authorization": "Bearer b"}}}
	if got := strings.Join(agent.MCPSecrets(servers), " "); got != "HEADER_SECRET=Bearer b HEADER_SECRET=b TOKEN=a" {
		t.Errorf("%q", got)
	}
}
