package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/internal/memorybus"
)

// newContainer returns a backend with an integration that runs processes.
func newContainer(t *testing.T) (*backend.Container, *memorybus.Bus) {
	t.Helper()
	bus := new(memorybus.Bus)
	i := &containers.Integration{
		Bus: bus, Engine: &containers.Process{Path: "/usr/bin:/bin"}, Profiles: map[string]string{"shell": ""},
		Failed: func(err error) { t.Error(err) },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = i.Serve(ctx) // ends with the error of ctx
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return &backend.Container{Bus: bus, Profile: "shell", Source: "test"}, bus
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestContainerRunsItsCommands(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	dir := t.TempDir()
	r := start(t, b, backend.Attempt{
		Workdir: dir, Env: []string{"X_TOKEN=sk-very-secret"}, Labels: backend.RecordLabels("m", "t", ""), Tags: map[string]string{"worker_profile": "large", "task": "forged"},
		Commands: backend.Commands{Before: shell("echo before > log"), Main: shell("echo main >> log; echo codex-cli 1 sk-very-secret"), After: shell("echo after >> log")},
	})
	o := r.finish(backend.Completed)
	if text, err := os.ReadFile(filepath.Join(dir, "log")); string(text) != "before\nmain\nafter\n" {
		t.Errorf("the commands wrote %q, %v", text, err)
	}
	if o.Text != "codex-cli 1 ***" || len(o.Commands) != 3 || !o.Commands[2].Passed || o.Runtime != "container" {
		t.Errorf("%+v", o)
	}
	r.wantReported("notice: starting container task backend", "message: codex-cli 1 ***", "notice: container run completed")
	requests := bus.Events(containers.NameRunRequest)
	var request containers.RunRequest
	if err := json.Unmarshal(requests[1].Payload, &request); err != nil {
		t.Fatal(err)
	}
	if len(requests) != 3 || request.Labels["task"] != "t" || request.Labels["worker_profile"] != "large" || request.TimeoutSeconds != 24*3600 || request.Workdir != dir || requests[1].Source != "test" {
		t.Errorf("%d requests, %+v", len(requests), request)
	}
	for _, e := range requests {
		if strings.Contains(string(e.Payload), "X_TOKEN") {
			t.Errorf("a variable is in the log: %s", e.Payload)
		}
	}
}

func TestContainerCommandFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commands backend.Commands
		want     string
		ran      int
	}{
		"before": {backend.Commands{Before: shell("echo no >&2; exit 3"), Main: shell("true")}, `command "sh -c echo no >&2; exit 3" ended with exit code 3: no`, 1},
		"main":   {backend.Commands{Main: shell("exit 1"), After: shell("true")}, `command "sh -c exit 1" ended with exit code 1`, 1},
		"after":  {backend.Commands{Main: shell("true"), After: shell("exit 4")}, `command "sh -c exit 4" ended with exit code 4`, 2},
		"none":   {backend.Commands{Main: []string{"no-such-command"}}, `the container was not run: command "no-such-command"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := newContainer(t)
			o := start(t, b, backend.Attempt{Workdir: t.TempDir(), Commands: c.commands}).finish(backend.Failed)
			if !strings.Contains(o.Err.Error(), c.want) || len(o.Commands) != c.ran {
				t.Errorf("%v after %d commands, want %s after %d", o.Err, len(o.Commands), c.want, c.ran)
			}
		})
	}
}

func TestContainerReadOnly(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	b.HostPath = filepath.Clean
	start(t, b, backend.Attempt{Workdir: t.TempDir(), Sandbox: backend.ReadOnly, Commands: backend.Commands{Main: shell("true")}}).finish(backend.Completed)
	if payload := string(bus.Events(containers.NameRunRequest)[0].Payload); !strings.Contains(payload, `"read_only":true`) {
		t.Errorf("the request is %s", payload)
	}
}

// The machine of the integration can have the folders at other places.
func TestContainerHasFoldersOfTheHost(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	tree := t.TempDir()
	checkout := filepath.Join(tree, "module")
	b.Mounts = []containers.Mount{{Source: "/workspace", Target: "/workspace", ReadOnly: true}}
	b.HostPath = func(path string) string { return "/host" + path }
	start(t, b, backend.Attempt{Workdir: checkout, Surroundings: tree, Commands: backend.Commands{Main: shell("true")}}).finish(backend.Failed) // the engine has no other places
	var request containers.RunRequest
	if err := json.Unmarshal(bus.Events(containers.NameRunRequest)[0].Payload, &request); err != nil {
		t.Fatal(err)
	}
	want := []containers.Mount{
		{Source: "/host/workspace", Target: "/workspace", ReadOnly: true}, {Source: "/host" + tree, Target: tree, ReadOnly: true}, {Source: "/host" + checkout, Target: checkout},
	}
	if !slices.Equal(request.Mounts, want) || request.Workdir != checkout {
		t.Errorf("%+v", request)
	}
}

// A container has the dependencies of its worktree, which it cannot change.
func TestContainerHasDependencies(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	workspace, tree := t.TempDir(), t.TempDir()
	checkout := filepath.Join(tree, "module")
	for _, folder := range []string{checkout, filepath.Join(workspace, "other")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(workspace, "other", "text")
	if err := errors.Join(os.WriteFile(file, []byte("shared\n"), 0o600), os.Symlink(filepath.Join(workspace, "other"), filepath.Join(tree, "other"))); err != nil {
		t.Fatal(err)
	}
	b.Mounts = []containers.Mount{{Source: workspace, Target: workspace, ReadOnly: true}}
	b.HostPath = filepath.Clean
	a := backend.Attempt{Workdir: checkout, Surroundings: tree, Commands: backend.Commands{
		Main: shell("cat ../other/text > made; echo x 2>/dev/null > ../other/text; echo x 2>/dev/null > ../outside; cat made"),
	}}
	if o := start(t, b, a).finish(backend.Completed); o.Text != "shared" {
		t.Errorf("%+v", o)
	}
	var request containers.RunRequest
	if err := json.Unmarshal(bus.Events(containers.NameRunRequest)[0].Payload, &request); err != nil {
		t.Fatal(err)
	}
	want := []containers.Mount{
		{Source: workspace, Target: workspace, ReadOnly: true}, {Source: tree, Target: tree, ReadOnly: true}, {Source: checkout, Target: checkout},
	}
	if !slices.Equal(request.Mounts, want) {
		t.Errorf("mounts %+v", request.Mounts)
	}
	if text, err := os.ReadFile(filepath.Join(checkout, "made")); string(text) != "shared\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").Run() != nil {
		return // without user namespaces the mounts of the process engine are writable
	}
	if text, err := os.ReadFile(file); string(text) != "shared\n" || err != nil {
		t.Errorf("a dependency was changed: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(tree, "outside")); err == nil {
		t.Error("a file was made outside the checkout")
	}
}

// A stopped attempt has its container deleted.
func TestContainerIsStopped(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	dir := t.TempDir()
	r := start(t, b, backend.Attempt{Workdir: dir, Commands: backend.Commands{Main: shell("touch started; sleep 1000")}})
	testwait.Exists(t, filepath.Join(dir, "started"))
	if o := r.Stop(t.Context(), "no longer needed"); o.Result != backend.Canceled || o.Err.Error() != "no longer needed" {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	deleted := errors.New("deleted")
	err := bus.Stream(ctx, events.Query{Names: []string{containers.NameRunResponse}, Replay: true}, func(e events.Event) error {
		if strings.Contains(string(e.Payload), `"state":"deleted"`) {
			return deleted
		}
		return nil
	})
	if !errors.Is(err, deleted) {
		t.Errorf("the container was not deleted: %v", err)
	}
}

func TestContainerTakesTooLong(t *testing.T) {
	t.Parallel()
	b, _ := newContainer(t)
	r := start(t, b, backend.Attempt{Workdir: t.TempDir(), Timeout: time.Second, Commands: backend.Commands{Main: shell("echo begun; sleep 1000")}})
	if o := r.finish(backend.TimedOut); o.Text != "begun" {
		t.Errorf("%+v", o)
	}
}

func TestContainerHasNoConversation(t *testing.T) {
	t.Parallel()
	b, _ := newContainer(t)
	r := start(t, b, backend.Attempt{Workdir: t.TempDir(), Commands: backend.Commands{Main: shell("sleep 1000")}})
	if _, err := r.Say(t.Context(), "x"); !errors.Is(err, backend.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := r.Ask(t.Context(), "x"); !errors.Is(err, backend.ErrUnsupported) {
		t.Error(err)
	}
	if err := r.Answer(t.Context(), "1", session.Accept); !errors.Is(err, backend.ErrNotPending) {
		t.Error(err)
	}
	if err := r.Interrupt(t.Context()); err != nil {
		t.Error(err)
	}
	r.finish(backend.Canceled)
}

func TestContainerAttemptHasARecord(t *testing.T) {
	t.Parallel()
	b, _ := newContainer(t)
	records := &runs.Records{Root: filepath.Join(t.TempDir(), "runs"), Required: true}
	b.Recorder = records
	a := backend.Attempt{
		Workdir: t.TempDir(), Prompt: "Show the version.", Env: []string{"X_TOKEN=sk-very-secret"}, Labels: backend.RecordLabels("m", "t", ""),
		Commands: backend.Commands{Before: shell("echo before"), Main: shell("echo main sk-very-secret; echo err >&2; exit 3")},
	}
	o := start(t, b, a).finish(backend.Failed)
	run, err := records.Find(t.Context(), o.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if i := run.Info; i.Status != runs.StatusFailed || i.ExitCode != 3 || i.ProjectID != "m" || i.TaskID != "t" || i.Agent != "container" || i.ErrorKind != "agent" {
		t.Errorf("%+v", i)
	}
	for name, want := range map[string]string{"agent-stdout.txt": "before\nmain ***\n", "agent-stderr.txt": "err\n", "prompt.md": "Show the version."} {
		if text, err := os.ReadFile(filepath.Join(run.Dir, name)); strings.TrimSpace(string(text)) != strings.TrimSpace(want) {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	b.Recorder = &runs.Records{Root: filepath.Join(records.Root, "m", "t", "TASK.md", "x"), Required: true}
	if o := start(t, b, a).finish(backend.Failed); len(o.Commands) > 0 || !strings.Contains(o.Err.Error(), "is required") {
		t.Errorf("without the required record: %+v", o)
	}
}

// The runs of a worker that was killed continue in the integration, until the next attempt.
func TestContainersOfAKilledWorkerAreDeleted(t *testing.T) {
	t.Parallel()
	b, bus := newContainer(t)
	b.Recorder = &runs.Records{Root: filepath.Join(t.TempDir(), "runs"), Required: true}
	opened := make(chan backend.Conversation, 1)
	forever := backend.Attempt{Workdir: t.TempDir(), Labels: backend.RecordLabels("m", "t", ""), Commands: backend.Commands{Main: shell("sleep 1000")}}
	killed, err := b.Start(t.Context(), forever, backend.Listener{Opened: func(c backend.Conversation) { opened <- c }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killed.Stop(context.Background(), "") })
	next := forever
	next.Labels, next.Commands.Main = backend.RecordLabels("m", "t", (<-opened).RunID), shell("true")
	start(t, b, next).finish(backend.Completed)
	if len(bus.Events(containers.NameDeleteRequest)) != 3 {
		t.Fatal("the runs were not deleted")
	}
	if o := killed.Outcome(); o.Result != backend.Canceled || !strings.Contains(o.Err.Error(), "the container was deleted") {
		t.Errorf("%+v", o)
	}
}

// brokenBus refuses to publish, and its streams end at once.
type brokenBus struct{ memorybus.Bus }

var errBroken = errors.New("broken")

func (b *brokenBus) Publish(ctx context.Context, d events.Draft) (events.Published, error) {
	_, _ = b.Bus.Publish(ctx, d)
	return events.Published{}, errBroken
}

func TestContainerWithoutABus(t *testing.T) {
	t.Parallel()
	bus := new(brokenBus)
	b := &backend.Container{Bus: bus, Image: "debian"}
	o := start(t, b, backend.Attempt{Workdir: t.TempDir(), Commands: backend.Commands{Main: shell("true")}}).finish(backend.Failed)
	if !errors.Is(o.Err, errBroken) || len(bus.Events(containers.NameDeleteRequest)) != 1 {
		t.Errorf("%v", o.Err)
	}
}

func TestContainerRefuses(t *testing.T) {
	t.Parallel()
	good := backend.Attempt{Workdir: t.TempDir(), Commands: backend.Commands{Main: shell("true")}}
	relative, empty, open, outside := good, good, good, good
	relative.Workdir, empty.Commands, open.Sandbox, outside.Surroundings = "x", backend.Commands{}, "none", "/elsewhere"
	for want, c := range map[string]struct {
		b backend.Container
		a backend.Attempt
	}{
		"either a profile or an image": {backend.Container{}, good},
		`workdir "x" is not absolute`:  {backend.Container{Image: "i"}, relative},
		"is not in its surroundings":   {backend.Container{Image: "i"}, outside},
		"command of the container is":  {backend.Container{Image: "i"}, empty},
		`sandbox "none" is unknown`:    {backend.Container{Image: "i"}, open},
	} {
		if _, err := c.b.Start(t.Context(), c.a, backend.Listener{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A run that ended with its integration can be tried again; a refused one cannot.
func TestInterruptedContainerIsRetryable(t *testing.T) {
	t.Parallel()
	for code, retryable := range map[string]bool{containers.CodeInterrupted: true, "bad_request": false} {
		bus := new(memorybus.Bus)
		b := &backend.Container{Bus: bus, Image: "debian"}
		r := start(t, b, backend.Attempt{Workdir: t.TempDir(), Commands: backend.Commands{Main: shell("true")}})
		requested := errors.New("requested")
		err := bus.Stream(t.Context(), events.Query{Names: []string{containers.NameRunRequest}, Replay: true}, func(e events.Event) error {
			_, err := bus.Publish(t.Context(), events.Draft{Name: containers.NameRunResponse, CorrelationID: e.CorrelationID, Error: &events.Failure{Code: code, Message: "x"}})
			return errors.Join(err, requested)
		})
		if !errors.Is(err, requested) {
			t.Fatal(err)
		}
		if o := r.finish(backend.Failed); o.Retryable != retryable {
			t.Errorf("%s: %+v", code, o)
		}
	}
}
