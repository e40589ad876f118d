package acp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/cursor"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// TestExampleAgentAsARuntime holds sessions with the example agent as the agent
// of a runtime that is described and of one that is built in.
func TestExampleAgentAsARuntime(t *testing.T) {
	t.Parallel()
	program := buildExampleAgent(t)
	fromJSON, err := described.Runtime("mine", []byte(`{
		"executables": ["agent"], "install_url": "https://example.com/mine",
		"output": "acp", "args": ["serve", ["--model", "{model}"], "{access}"],
		"access": {"write": [], "full": ["--all"]}
	}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range []registry.Runtime{fromJSON, cursor.Runtime()} {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			workdir := filepath.Join(dir, "work")
			for name, text := range map[string]string{"bin/": "", "tmp/": "", "work/.git/HEAD": "", "work/AGENTS.md": "Rules.\n"} {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(program, filepath.Join(dir, "bin", rt.Executables[0])); err != nil {
				t.Fatal(err)
			}
			var known registry.Registry
			if err := known.Register(rt); err != nil {
				t.Fatal(err)
			}
			r := runner.Runner{Registry: &known, Environ: []string{"PATH=" + filepath.Join(dir, "bin"), "TMPDIR=" + filepath.Join(dir, "tmp")}, Warn: func(line string) { t.Log(line) }}
			for access, asks := range map[agent.Access]int{agent.AccessWrite: 1, agent.AccessFull: 0} {
				asked := 0
				var command agent.Command
				req := agent.Request{Runtime: rt.ID, Model: "m", Workdir: workdir, Access: access}
				s, err := r.StartSession(t.Context(), req, session.Options{ApprovalTimeout: -1, Started: func(s agent.Start) { command = s.Command }, Events: func(e *agent.Event) error {
					if e.Kind == agent.KindApproval {
						asked++
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				result, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
				if err != nil || !strings.Contains(result.Text, "configuration") || result.Runtime != rt.ID {
					t.Errorf("%+v, %v", result, err)
				}
				s.Stop(t.Context(), "")
				if asked != asks {
					t.Errorf("%s: %d requests, want %d", access, asked, asks)
				}
				want := map[string]string{"mine write": "serve --model m", "mine full": "serve --model m --all", "cursor write": "acp", "cursor full": "acp"}[rt.ID+" "+string(access)]
				if got := strings.Join(command.Args, " "); got != want || command.Stdin != "" {
					t.Errorf("%s: started with %q, want %q", access, got, want)
				}
			}
			if rt.ID == "mine" {
				if _, err := r.Run(t.Context(), agent.Request{Runtime: rt.ID, Workdir: workdir, Prompt: "go"}, agent.Output{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "cannot run once") {
					t.Error(err)
				}
			}
		})
	}
}
