package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/runner"
	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
	"github.com/busdk/bus-integration-task/worker/settings"
)

// workerOf returns the worker of a command line. It has the recipient dev.
func workerOf(t *testing.T, args map[string]string, environ ...map[string]string) *taskWorker {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(home, "src", "dev"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "bin"))
	for _, name := range []string{"codex", "claude"} {
		if err := stubagent.Install(filepath.Join(home, "bin"), name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	flags := map[string]string{"recipient": "dev", "workspace-root": filepath.Join(home, "src")}
	for name, text := range args {
		flags[name] = text
	}
	var variables []string
	for _, more := range environ {
		for name, text := range more {
			variables = append(variables, name+"="+text)
		}
	}
	s, err := settings.Resolve(func(name string) (string, bool) { text, ok := flags[name]; return text, ok }, variables)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorker(cli.NewContext(newApp(io.Discard, io.Discard), nil, nil), s, &tasklog.Log{Client: &events.Client{}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWorkerHasItsSettings(t *testing.T) {
	w := workerOf(t, map[string]string{
		"agent-backend": "session:codex", "fallback": "claude", "args-json": `["-c","x=1"]`, "codex-source-home": "/home/of/codex",
		"work-ref": "bus#1.1", "worker-id": "w-9", "lease": "5s", "max-parallel-workers": "3", "worker-mode": "disposable",
		"idle-timeout": "1m", "hand-back": "0s", "safe-crash-retry-count": "2", "one-worker-per-recipient": "true",
	})
	if w.ID != "w-9" || w.WorkRef != "bus#1.1" || w.SafeRetries != 2 || w.Lease != 5*time.Second || w.Parallel != 3 || !w.Once ||
		w.IdleTimeout != time.Minute || w.HandBack >= 0 || w.locks == "" || w.Handler != worker.Handler(w.bridge) || w.Logger == nil || w.bridge.Logger == nil {
		t.Errorf("%+v", w.Worker)
	}
	if log, ok := w.Log.(*tasklog.Log); !ok || !log.Open || log.Client.Timeout != time.Second {
		t.Errorf("%+v", w.Log)
	}
	session, ok := w.bridge.Backend.(*backend.Session)
	if !ok || session.Runtime != "codex" || !slices.Equal(session.Fallback, []string{"claude"}) || !slices.Equal(session.Args, []string{"-c", "x=1"}) ||
		!slices.Contains(session.Runner.Environ, "CODEX_HOME=/home/of/codex") || session.Runner.Recorder == nil {
		t.Errorf("%+v", w.bridge.Backend)
	}
	if !strings.HasPrefix(w.bridge.Settings.CodexStateRoot, os.Getenv("HOME")) {
		t.Errorf("the state of runtimes is in %q", w.bridge.Settings.CodexStateRoot)
	}
	if w := workerOf(t, nil); w.locks != "" || w.HandBack != 20*time.Second || w.Once || w.ID == "" {
		t.Errorf("%+v", w.Worker)
	}
}

// An agent has the arguments, the network and the environment that the operator set, and
// none that are for another runtime.
func TestAgentHasItsArguments(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-worker")
	const defaults = `["app-server","--listen","stdio://","-c","x=1"]`
	for name, c := range map[string]struct {
		args, environ map[string]string
		want          []string
		model         string
	}{
		"codex-appserver": {
			args:    map[string]string{"agent-backend": "codex-appserver", "codex-network-access": "true", "codex-inherit-env": "core"},
			environ: map[string]string{"BUS_TASK_CODEX_ARGS": defaults, "BUS_DEV_TASK_CODEX_MODEL": "m"},
			want:    []string{"-c", "x=1", "-c", "sandbox_workspace_write.network_access=true", "-c", `shell_environment_policy.inherit="core"`}, model: "m",
		},
		"session:codex": {
			args:    map[string]string{"agent-backend": "session:codex"},
			environ: map[string]string{"BUS_TASK_CODEX_ARGS": defaults, "BUS_TASK_CODEX_MODEL": "m", "BUS_TASK_CODEX_INHERIT_ENV": "none"},
			want:    []string{"-c", "x=1"}, model: "m",
		},
		"session:claude": {
			args:    map[string]string{"agent-backend": "session:claude"},
			environ: map[string]string{"BUS_TASK_CODEX_ARGS": defaults, "BUS_DEV_TASK_CODEX_ARGS": defaults, "BUS_TASK_CODEX_MODEL": "m"},
		},
		"session:claude with others": {
			args:    map[string]string{"agent-backend": "session:claude", "auth-mode": "chatgpt-subscription"},
			environ: map[string]string{"BUS_TASK_CODEX_ARGS": defaults, "BUS_TASK_ARGS_JSON": `["-v"]`, "BUS_TASK_MODEL": "n"},
			want:    []string{"-v"}, model: "n",
		},
	} {
		w := workerOf(t, c.args, c.environ)
		session := w.bridge.Backend.(*backend.Session)
		if !slices.Equal(session.Args, c.want) || w.bridge.Settings.Model != c.model {
			t.Errorf("%s: arguments %q, model %q", name, session.Args, w.bridge.Settings.Model)
		}
		hidden := !slices.Contains(session.Runner.Environ, "OPENAI_API_KEY=sk-of-the-worker")
		if want := c.args["auth-mode"] != ""; hidden != want {
			t.Errorf("%s: the key is hidden: %t", name, hidden)
		}
	}
}

func TestContainerHasItsSettings(t *testing.T) {
	w := workerOf(t, map[string]string{
		"agent-backend": "container", "command-json": `["true"]`, "container-image": "img", "workspace-host-root": "/host", "auth-mode": "openai-api-key",
	})
	b, ok := w.bridge.Backend.(*backend.Container)
	src := filepath.Join(os.Getenv("HOME"), "src")
	if !ok || b.Image != "img" || b.Profile != "" || b.Recorder == nil || !slices.Equal(b.Env, []string{"OPENAI_API_KEY"}) || b.HostPath(src+"/dev") != "/host/dev" {
		t.Errorf("%+v", b)
	}
	if diff := cmp.Diff([]containers.Mount{{Source: src, Target: src, ReadOnly: true}}, b.Mounts); diff != "" {
		t.Error(diff)
	}
	w = workerOf(t, map[string]string{"agent-backend": "container", "command-json": `["true"]`, "container-profile": "p", "read-only-dependency-worktrees": "false"})
	if b := w.bridge.Backend.(*backend.Container); b.Profile != "p" || b.Image != "" || b.Mounts != nil || b.Env != nil {
		t.Errorf("%+v", b)
	}
}

func TestSecondWorkerOfARecipientIsRefused(t *testing.T) {
	w := workerOf(t, map[string]string{"one-worker-per-recipient": "true"})
	release, err := worker.Alone(w.locks, "dev")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := w.Run(t.Context()); !errors.Is(err, worker.ErrNotAlone) {
		t.Errorf("Run = %v", err)
	}
}

func TestLoggerMasksSecretsAtItsLevel(t *testing.T) {
	t.Parallel()
	const secret = `tok-"0123456789"`
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		var out bytes.Buffer
		l := newLogger(&out, settings.Settings{LogLevel: level}, []string{"MY_TOKEN=" + secret})
		l.Error(secret, "error", errors.New(secret))
		l.Warn("x", "text", "a\n"+secret)
		l.Info("\x1b]0;owned\x07")
		l.Debug("x")
		l.Log(t.Context(), worker.LevelTrace, "x")
		if got := out.String(); strings.Count(got, "\n") != want || strings.Contains(got, "0123456789") || strings.ContainsAny(got, "\x1b\x07") {
			t.Errorf("%s: %q", level, got)
		}
	}
	if l := newLogger(io.Discard, settings.Settings{LogLevel: "error", Trace: true}, nil); !l.Enabled(t.Context(), worker.LevelTrace) || l.Enabled(t.Context(), slog.Level(-100)) {
		t.Error("--trace does not log events")
	}
}

func TestSecondSignalHurries(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal)
	ctx := interrupted(signals)
	if ctx.Err() != nil || again(t.Context()) != nil {
		t.Error("before a signal:", ctx.Err())
	}
	signals <- os.Interrupt
	<-ctx.Done()
	select {
	case <-again(ctx):
		t.Error("the first signal is a second one")
	default:
	}
	signals <- os.Interrupt
	<-again(ctx)
}

func TestWorkerNeedsItsCLI(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", home)
	t.Setenv("BUS_API_TOKEN", "t")
	if err := os.Mkdir(filepath.Join(home, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "--recipient", "dev", "--workspace-root", home)
	if code != 1 || !strings.Contains(stderr, "Codex CLI is not installed: no codex in PATH; get it at https://") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// An executable that is not in PATH, and has another name, is one too.
func TestCommandIsFoundByItsPath(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "codex-next")
	if err := os.WriteFile(elsewhere, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	session, err := backend.AppServer{Command: elsewhere}.Session(runner.Runner{})
	if err != nil {
		t.Fatal(err)
	}
	if err := installed(t.Context(), session); err != nil {
		t.Error(err)
	}
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := installed(t.Context(), session); err == nil || !strings.Contains(err.Error(), "no codex-next in PATH") {
		t.Error(err)
	}
}
