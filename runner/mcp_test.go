package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

func TestMCPServersAreSettledBeforeTheStart(t *testing.T) {
	t.Parallel()
	b, c := countedBench(t)
	c.Runtime.Run.Options.MCPServers = true
	if err := b.Registry.Replace(c.Runtime); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	req := b.request("say text:hi")
	req.Runtime = "counted"
	req.Env = []string{"MCP_WORD=found", "PROGRAM=" + program}
	req.MCPServers = []agent.MCPServer{{Name: "a", Command: "${PROGRAM}", Args: []string{"${MCP_WORD}"}}}
	if _, err := b.DryRun(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := c.last.MCPServers; len(got) != 1 || got[0].Command != program || got[0].Args[0] != "found" {
		t.Errorf("the runtime got %+v", got)
	}
	for want, s := range map[string]agent.MCPServer{
		"MISSING is not set": {Name: "a", Command: "${MISSING}"},
		"no executable":      {Name: "a", Command: "no-such-program-of-mcp"},
		"its name":           {Name: "a b", Command: program},
	} {
		req.MCPServers = []agent.MCPServer{s}
		if _, err := b.DryRun(t.Context(), req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a usage error with %q", s, err, want)
		}
	}

	req.Env = []string{"FAKE_AGENT=stderr seen-hidden-header\nexit 3"}
	req.MCPServers = []agent.MCPServer{{Name: "a", URL: "https://example.com/", Headers: map[string]string{"Authorization": "Bearer hidden-header"}}}
	_, err = b.Run(t.Context(), req, agent.Output{})
	if exit, ok := errors.AsType[*agent.ExitError](err); !ok || exit.Stderr != "seen-***" {
		t.Errorf("a run that fails: %#v, want an error without the secret", err)
	}
	seen := new(recorder)
	b.Recorder = seen
	_, err = b.Run(t.Context(), req, agent.Output{})
	if got := runner.Mask(slices.Concat(seen.run.Environ, seen.run.Secrets), seen.stderr.String()); got != "seen-***\n" {
		t.Errorf("what is recorded: %q, %v", got, err)
	}
	b.Recorder = nil
	planted := filepath.Join(b.dir, "server")
	if err := os.WriteFile(planted, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	req.MCPServers = []agent.MCPServer{{Name: "a", Command: planted}}
	if _, err := b.DryRun(t.Context(), req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "is in the repository") {
		t.Errorf("a program of the repository: %v", err)
	}
	req.TrustWorkspace = true
	if _, err := b.DryRun(t.Context(), req); err != nil {
		t.Errorf("a program of a repository that is trusted: %v", err)
	}
}
