package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/otel/telemetry"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/settings"
)

func workerFlags() []cli.Flag { return settings.Flags() }

func runWorker(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		return agent.Usagef("there is no command %.80q; see %s --help", name, c.App.Name)
	}
	s, err := settings.Resolve(settings.FromContext(c), os.Environ())
	if err != nil {
		return err
	}
	log, err := connect(c, s.EventsURL, s.EventsTokenFile, s.AllowInsecure)
	if err != nil {
		return err
	}
	w, err := newWorker(c, s, log)
	if err != nil {
		return err
	}
	return w.Run(c.Context)
}

// taskWorker is a worker with what it needs of this machine.
type taskWorker struct {
	*worker.Worker
	bridge *worker.Bridge
	locks  string // folder of worker.Alone; empty: other workers of the recipient may run
}

// Run runs the worker until ctx ends.
func (w *taskWorker) Run(ctx context.Context) error {
	if w.locks != "" {
		release, err := worker.Alone(w.locks, w.Recipient)
		if err != nil {
			return err
		}
		defer release()
	}
	shutdown, err := telemetry.Setup(ctx, version)
	warn := func(err error) {
		if err != nil {
			w.Logger.Warn(err.Error())
		}
	}
	warn(err)
	defer func() { warn(shutdown(context.WithoutCancel(ctx))) }()
	warn(w.bridge.Prune(ctx))
	w.Logger.Info(fmt.Sprintf("worker %s claims tasks of @%s", w.ID, w.Recipient))
	return w.Worker.Run(ctx)
}

// newLogger returns the logger that the settings describe. It masks the secrets of environ.
func newLogger(to io.Writer, s settings.Settings, environ []string) *slog.Logger {
	var level slog.Level
	if s.Trace {
		level = worker.LevelTrace
	} else if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo // cannot happen: the names are those of slog
	}
	masker := runner.NewMasker(environ)
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindAny:
			if _, isLevel := a.Value.Any().(slog.Level); !isLevel {
				a.Value = slog.StringValue(masker.Text(a.Value.String()))
			}
		}
		return a
	}}))
}

// newWorker returns the worker that the settings describe.
func newWorker(c *cli.Context, s settings.Settings, log *tasklog.Log) (*taskWorker, error) {
	if s.Recipient == "" {
		return nil, agent.Usagef("--recipient is missing; name the module whose tasks to claim")
	}
	if _, err := s.Repository(s.Recipient); err != nil {
		return nil, err
	}
	root, err := runs.DefaultRoot(os.Environ())
	if err != nil {
		return nil, err
	}
	if s.CodexStateRoot == "" { // the sessions of a task outlive its worktree, so that it can be reopened
		s.CodexStateRoot = filepath.Join(filepath.Dir(root), "task-sessions")
	}
	b, err := newBackend(s, log, root)
	if err != nil {
		return nil, err
	}
	if err := installed(c.Context, b); err != nil {
		return nil, err
	}
	id := s.WorkerID
	if id == "" {
		host, _ := os.Hostname()
		id = strings.ToLower(strings.Trim(host, "-.") + "-" + rand.Text()[:8])
	}
	hidden := hiddenSecrets(b, log)
	logger := newLogger(c.App.ErrWriter, s, append(os.Environ(), hidden("")...))
	open := *log
	open.Open = true // what has ended is not to be claimed
	// A request that hangs must not take the lease with it.
	log.Client.Timeout = min(max(cmp.Or(s.Lease, worker.DefaultLease)/6, time.Second), 10*time.Second)
	w := &taskWorker{bridge: &worker.Bridge{Settings: s, Backend: b, Environ: os.Environ(), Hidden: hidden, Logger: logger}}
	w.Worker = &worker.Worker{
		Worker: task.Worker{ID: id, Recipient: s.Recipient, WorkRef: s.WorkRef, SafeRetries: s.SafeCrashRetries},
		Log:    &open, Handler: w.bridge,
		Lease: s.Lease, Parallel: s.MaxParallel, Once: s.Once, IdleTimeout: s.IdleTimeout, HandBack: handBack(s), Hurry: again(c.Context), Logger: logger,
	}
	if s.OnePerRecipient {
		w.locks = filepath.Join(filepath.Dir(root), "task-workers")
	}
	return w, nil
}

// installed fails if no runtime of the backend is installed. Each task would end as failed.
func installed(ctx context.Context, b backend.Backend) error {
	session, ok := b.(*backend.Session)
	if !ok {
		return nil
	}
	known := session.Runner.Registry
	if known == nil {
		known = registry.Default()
	}
	here := session.Runner
	here.TrustWorkspace = true      // agents run in worktrees, not in the current directory
	detected, _ := here.Detect(ctx) // the error is that of a list, which counts as not set
	var missing error
	for _, token := range append([]string{session.Runtime}, session.Fallback...) {
		rt, _, err := known.ParseToken(token)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(detected, func(d runner.Detected) bool { return d.Runtime.ID == rt.ID && d.Path != "" }) {
			return nil
		}
		missing = cmp.Or(missing, fmt.Errorf("%s is not installed: no %s in PATH; get it at %s", rt.Name, strings.Join(rt.Executables, " or "), rt.InstallURL))
	}
	return missing
}

// hiddenSecrets returns a function that returns the secrets that are not in the environment:
// the token of the log, and the logins of the agent.
func hiddenSecrets(b backend.Backend, log *tasklog.Log) func(stateDir string) []string {
	return func(stateDir string) (secrets []string) {
		if source := log.Client.Token; source != nil { // dev has none yet at its start
			if token, err := source(context.Background(), ""); err == nil { // a request reports the error
				secrets = append(secrets, "BUS_EVENTS_TOKEN="+token)
			}
		}
		if session, ok := b.(*backend.Session); ok {
			secrets = append(secrets, session.LoginSecrets(stateDir)...)
		}
		return secrets
	}
}

// handBack returns the setting as the worker takes it, where 0 is the default.
func handBack(s settings.Settings) time.Duration {
	if s.HandBack == 0 {
		return -1
	}
	return s.HandBack
}

// newBackend returns the backend that the settings name.
func newBackend(s settings.Settings, log *tasklog.Log, records string) (backend.Backend, error) {
	recorder := agent.Recorders(&runs.Records{Root: records}, telemetry.New())
	if s.AgentBackend == backend.NameContainer {
		return newContainer(s, log, recorder)
	}
	runtime, ok := backend.SessionRuntime(s.AgentBackend)
	if !ok {
		return nil, agent.Usagef("--agent-backend %q: use codex-appserver, container, or session:RUNTIME", s.AgentBackend)
	}
	environ := os.Environ()
	if s.CodexSourceHome != "" {
		environ = append(environ, "CODEX_HOME="+s.CodexSourceHome)
	}
	if s.AuthMode == settings.AuthSubscription {
		environ = slices.DeleteFunc(environ, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return name == "OPENAI_API_KEY" || name == "CODEX_API_KEY"
		})
	}
	r := runner.Runner{Environ: environ, Recorder: recorder}
	session := &backend.Session{Runner: r, Args: s.Args}
	if backend.IsCodex(s.AgentBackend) {
		var err error
		if session, err = s.AppServer().Session(r); err != nil {
			return nil, err
		}
	}
	session.Runtime = runtime
	session.Fallback = s.Fallback
	if len(s.Fallback) > 0 {
		dir, err := fallback.DefaultDir(environ)
		if err != nil {
			return nil, err
		}
		session.Cooldowns = fallback.NewCooldowns(dir)
	}
	return session, session.Check()
}

// newContainer returns the backend container. An image replaces the profile.
func newContainer(s settings.Settings, log *tasklog.Log, recorder agent.Recorder) (*backend.Container, error) {
	b := &backend.Container{Bus: log.Client, Profile: s.ContainerProfile, Image: s.ContainerImage, HostPath: s.HostPath, Source: source, Recorder: recorder}
	if b.Image != "" {
		b.Profile = ""
	}
	if s.AuthMode == settings.AuthOpenAIKey { // the key is one of the integration: events carry its name alone
		b.Env = []string{"OPENAI_API_KEY"}
	}
	if s.Worktree && s.ReadOnlyDeps { // what the links of a worktree lead to
		workspace, err := filepath.EvalSymlinks(s.WorkspaceRoot)
		if err != nil {
			return nil, agent.Usagef("--workspace-root: %v", err)
		}
		b.Mounts = []containers.Mount{{Source: workspace, Target: workspace, ReadOnly: true}}
	}
	return b, nil
}
