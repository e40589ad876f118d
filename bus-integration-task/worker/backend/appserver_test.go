package backend_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
)

func TestAppServerArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		server backend.AppServer
		want   []string
		err    string
	}{
		"none":         {},
		"the defaults": {server: backend.AppServer{Args: []string{"app-server", "--listen", "stdio://"}}},
		"others":       {server: backend.AppServer{Args: []string{"app-server", "-c", "a=1", "--listen=stdio://", "-c", "b=2"}}, want: []string{"-c", "a=1", "-c", "b=2"}},
		"settings": {
			server: backend.AppServer{NetworkAccess: new(true), InheritEnv: "core"},
			want:   []string{"-c", "sandbox_workspace_write.network_access=true", "-c", `shell_environment_policy.inherit="core"`},
		},
		"an address":      {server: backend.AppServer{Args: []string{"--listen", "ws://0.0.0.0:1"}}, err: `the App Server cannot listen on "ws://0.0.0.0:1"; use stdio://`},
		"no address":      {server: backend.AppServer{Args: []string{"--listen"}}, err: `cannot listen on ""`},
		"an environment":  {server: backend.AppServer{InheritEnv: "most"}, err: `inherited environment "most" is unknown; use all, core or none`},
		"a relative path": {server: backend.AppServer{Command: "bin/codex"}, err: `command "bin/codex" is neither a name nor an absolute path`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.server.Session(b.Runner)
			if c.err != "" {
				if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Args); diff != "" && len(c.want)+len(got.Args) > 0 {
				t.Error(diff)
			}
		})
	}
}

func TestAppServerCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bin := t.TempDir()
	if err := stubagent.Install(bin, "codex-next"); err != nil {
		t.Fatal(err)
	}
	for i, environ := range b.Runner.Environ { // no other codex
		if strings.HasPrefix(environ, "PATH=") {
			b.Runner.Environ[i] = "PATH=" + t.TempDir()
		}
	}
	s, err := backend.AppServer{Command: filepath.Join(bin, "codex-next")}.Session(b.Runner)
	if err != nil {
		t.Fatal(err)
	}
	b.Session = *s
	if o := b.start(backend.Attempt{Prompt: prompt("say hello")}).finish(backend.Completed); o.Text != "hello" {
		t.Errorf("%+v", o)
	}
	if err := os.Remove(filepath.Join(bin, "codex-next")); err != nil {
		t.Fatal(err)
	}
	if o := b.start(backend.Attempt{Prompt: prompt("say hello")}).finish(backend.Failed); !errors.Is(o.Err, agent.ErrNotInstalled) || o.Retryable {
		t.Errorf("%+v", o)
	}
}

func TestSessionRuntime(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"codex-appserver": "codex", "session:claude": "claude", "session:codex:x": "codex:x", "session:": "", "container": "", "": ""} {
		if got, ok := backend.SessionRuntime(name); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %t", name, got, ok)
		}
	}
}
