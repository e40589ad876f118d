package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
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
	fmt.Fprintf(c.App.ErrWriter, "worker %s claims tasks of @%s\n", w.ID, w.Recipient)
	return w.Run(c.Context)
}

// newWorker returns the worker that the settings describe.
func newWorker(c *cli.Context, s settings.Settings, log *tasklog.Log) (*worker.Worker, error) {
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
	id := s.WorkerID
	if id == "" {
		host, _ := os.Hostname()
		id = strings.ToLower(strings.Trim(host, "-.") + "-" + rand.Text()[:8])
	}
	return &worker.Worker{
		Worker:  task.Worker{ID: id, Recipient: s.Recipient, WorkRef: s.WorkRef, SafeRetries: s.SafeCrashRetries},
		Log:     log,
		Handler: &worker.Bridge{Settings: s, Backend: b, Environ: os.Environ(), Warn: warnTo(c)},
		Lease:   s.Lease, Parallel: s.MaxParallel, Once: s.Once || s.WorkerMode == "disposable",
		IdleTimeout: s.IdleTimeout, HandBack: s.HandBack, Warn: warnTo(c),
	}, nil
}

// newBackend returns the backend that the settings name.
func newBackend(s settings.Settings, log *tasklog.Log, records string) (backend.Backend, error) {
	if s.AgentBackend == backend.NameContainer {
		return &backend.Container{
			Bus: log.Client, Profile: s.ContainerProfile, Image: s.ContainerImage, HostPath: s.HostPath, Source: source,
		}, nil
	}
	runtime, ok := backend.SessionRuntime(s.AgentBackend)
	if !ok {
		return nil, agent.Usagef("--agent-backend %q: use codex-appserver, container, or session:RUNTIME", s.AgentBackend)
	}
	environ := os.Environ()
	if s.CodexSourceHome != "" {
		environ = append(environ, "CODEX_HOME="+s.CodexSourceHome)
	}
	r := runner.Runner{Environ: environ, Recorder: &runs.Records{Root: records}}
	session := &backend.Session{Runner: r, Runtime: runtime, Args: s.Args}
	if s.AgentBackend == backend.NameAppServer {
		var err error
		if session, err = s.AppServer().Session(r); err != nil {
			return nil, err
		}
	}
	session.Fallback = s.Fallback
	return session, session.Check()
}
