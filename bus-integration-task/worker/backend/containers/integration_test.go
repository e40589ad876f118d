package containers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/internal/memorybus"
)

// serve starts an integration with the process engine, which ends with the test.
func serve(t *testing.T, bus *memorybus.Bus) {
	t.Helper()
	serveWith(t, bus, &containers.Process{Path: "/usr/bin:/bin"}, "debian")
}

// serveWith starts an integration with an engine and the image of the profile shell.
func serveWith(t *testing.T, bus *memorybus.Bus, engine containers.Engine, image string) {
	t.Helper()
	i := &containers.Integration{
		Bus: bus, Engine: engine, Name: "here", Profiles: map[string]string{"shell": image},
		Failed: func(err error) { t.Error(err) },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Serve ended with %v", err)
			}
		case <-time.After(testwait.Limit):
			t.Error("Serve does not end")
		}
	})
}

func publish(t *testing.T, bus *memorybus.Bus, name string, payload any) (id string) {
	t.Helper()
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	published, err := bus.Publish(t.Context(), events.Draft{Name: name, CorrelationID: "c", Payload: text})
	if err != nil {
		t.Fatal(err)
	}
	return published.ID
}

// response returns the first response after an event.
func response(t *testing.T, bus *memorybus.Bus, after string) (r containers.RunResponse, failure *events.Failure) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	answered := errors.New("answered")
	err := bus.Stream(ctx, events.Query{Names: []string{containers.NameRunResponse}, AfterID: after, Replay: true}, func(e events.Event) error {
		if failure = e.Error; failure == nil {
			if err := json.Unmarshal(e.Payload, &r); err != nil {
				return err
			}
		}
		return answered
	})
	if !errors.Is(err, answered) {
		t.Fatal(err)
	}
	return r, failure
}

func runRequest(command ...string) containers.RunRequest {
	return containers.RunRequest{RunID: "run-1", Profile: "shell", Args: command, TimeoutSeconds: 20}
}

func TestRun(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	r, failure := response(t, bus, publish(t, bus, containers.NameRunRequest, runRequest("sh", "-c", "echo out; echo err >&2; echo $HOME $BUS_API_TOKEN; exit 3")))
	if failure != nil || r.State != containers.StateFailed || r.ExitCode != 3 || r.Stderr != "err\n" || r.Image != "debian" || r.RunnerName != "here" || r.Runtime != "process" || r.RunID != "run-1" {
		t.Errorf("%+v, %+v", r, failure)
	}
	if lines := strings.Split(r.Stdout, "\n"); lines[0] != "out" || lines[1] == os.Getenv("HOME") || !filepath.IsAbs(lines[1]) {
		t.Errorf("stdout %q", r.Stdout)
	}
}

// A request that is delivered twice runs once.
func TestRepeatedRequestRunsOnce(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	dir := t.TempDir()
	serve(t, bus)
	r := runRequest("sh", "-c", "echo x >> made")
	r.Workdir, r.Mounts = dir, []containers.Mount{{Source: dir, Target: dir}}
	first := publish(t, bus, containers.NameRunRequest, r)
	publish(t, bus, containers.NameRunRequest, r)
	response(t, bus, first)
	r.RunID = "run-2"
	last := publish(t, bus, containers.NameRunRequest, r)
	for got, _ := response(t, bus, last); got.RunID != r.RunID; got, _ = response(t, bus, last) {
		last = bus.Events(containers.NameRunResponse)[1].ID // of the repeated request
	}
	if text, err := os.ReadFile(filepath.Join(dir, "made")); string(text) != "x\nx\n" || err != nil {
		t.Errorf("two runs made %q, %v", text, err)
	}
	if n := len(bus.Events(containers.NameRunResponse)); n != 2 {
		t.Errorf("%d responses", n)
	}
}

func TestRunIsDeleted(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	dir := t.TempDir()
	r := runRequest("sh", "-c", "touch started; sleep 1000 & sleep 1000")
	r.Workdir, r.Mounts = dir, []containers.Mount{{Source: dir, Target: dir}}
	id := publish(t, bus, containers.NameRunRequest, r)
	testwait.Exists(t, filepath.Join(dir, "started"))
	publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-1"})
	if got, failure := response(t, bus, id); failure != nil || got.State != containers.StateDeleted {
		t.Errorf("%+v, %+v", got, failure)
	}
	if n := len(bus.Events(containers.NameDeleteResponse)); n != 1 {
		t.Errorf("%d responses to the deletion", n)
	}
	// One that is deleted before its request arrives does not run.
	publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-2"})
	publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-1"})
}

func TestRunTakesTooLong(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	r := runRequest("sh", "-c", "echo begun; sleep 1000")
	r.TimeoutSeconds = 1
	if got, failure := response(t, bus, publish(t, bus, containers.NameRunRequest, r)); failure != nil || got.State != containers.StateTimeout || got.Stdout != "begun\n" || got.ExitCode != -1 {
		t.Errorf("%+v, %+v", got, failure)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	r, _ := response(t, bus, publish(t, bus, containers.NameRunRequest, runRequest("sh", "-c", "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last")))
	if len(r.Stdout) > containers.MaxOutput || !strings.HasPrefix(r.Stdout, "first\n") || !strings.HasSuffix(r.Stdout, "last\n") {
		t.Errorf("%d bytes: %.20q", len(r.Stdout), r.Stdout)
	}
}

// The worktree is the only writable mount, also when it is inside a read-only one.
func TestReadOnlyMount(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	workspace := t.TempDir()
	worktree := filepath.Join(workspace, "worktree")
	if err := os.Mkdir(worktree, 0o700); err != nil {
		t.Fatal(err)
	}
	r := runRequest("sh", "-c", "touch inside; touch ../outside; pwd; test -e ../outside")
	r.Workdir = worktree
	r.Mounts = []containers.Mount{{Source: worktree, Target: worktree}, {Source: workspace, Target: workspace, ReadOnly: true}}
	got, failure := response(t, bus, publish(t, bus, containers.NameRunRequest, r))
	if _, err := os.Stat(filepath.Join(worktree, "inside")); err != nil || failure != nil {
		t.Errorf("%v; %+v, %+v", err, got, failure)
	}
	_, err := os.Stat(filepath.Join(workspace, "outside"))
	if containers.Isolates(t.Context()) && (err == nil || got.State != containers.StateFailed) {
		t.Errorf("the read-only mount was written: %+v", got)
	}
}

func TestRequestIsRefused(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	serve(t, bus)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		change func(*containers.RunRequest)
		want   string
	}{
		"an ID that is an option": {func(r *containers.RunRequest) { r.RunID = "--rm" }, `run_id "--rm" is not`},
		"an ID that is a path":    {func(r *containers.RunRequest) { r.RunID = "../x" }, `run_id "../x" is not`},
		"an image as an option":   {func(r *containers.RunRequest) { r.Profile, r.Image = "", "--privileged" }, `image "--privileged" is not`},
		"a profile and an image":  {func(r *containers.RunRequest) { r.Image = "x" }, "either a profile or an image"},
		"neither":                 {func(r *containers.RunRequest) { r.Profile = "" }, "either a profile or an image"},
		"a profile":               {func(r *containers.RunRequest) { r.Profile = "other" }, `profile "other" is unknown`},
		"a mount with options": {func(r *containers.RunRequest) {
			r.Mounts = []containers.Mount{{Source: "/,readonly=false", Target: "/"}}
		}, "is not a plain absolute path"},
		"a mount with steps":      {func(r *containers.RunRequest) { r.Mounts = []containers.Mount{{Source: "/a/../b", Target: "/b"}} }, "is not a plain absolute path"},
		"a mount elsewhere":       {func(r *containers.RunRequest) { r.Mounts = []containers.Mount{{Source: dir, Target: "/w"}} }, "it is at its own place only"},
		"a workdir elsewhere":     {func(r *containers.RunRequest) { r.Workdir = dir }, "is in no mount"},
		"a relative workdir":      {func(r *containers.RunRequest) { r.Workdir = "x" }, `workdir "x" is not`},
		"a variable with a value": {func(r *containers.RunRequest) { r.Env = []string{"A=b"} }, `"A=b" is not the name of a variable`},
		"a negative time":         {func(r *containers.RunRequest) { r.TimeoutSeconds = -1 }, "timeout_seconds -1 is not between"},
		"a long time":             {func(r *containers.RunRequest) { r.TimeoutSeconds = 1 << 40 }, "is not between"},
		"no command":              {func(r *containers.RunRequest) { r.Args = nil }, "the command is empty"},
		"a relative command":      {func(r *containers.RunRequest) { r.Args = []string{"./x"} }, "neither a name nor an absolute path"},
		"no such command":         {func(r *containers.RunRequest) { r.Args = []string{"no-such-command"} }, "executable file not found"},
		"a NUL":                   {func(r *containers.RunRequest) { r.Args = []string{"sh", "\x00"} }, "NUL"},
	} {
		r := runRequest("true")
		r.RunID = "refused-" + strings.ReplaceAll(name, " ", "-")
		c.change(&r)
		got, failure := response(t, bus, publish(t, bus, containers.NameRunRequest, r))
		if failure == nil || !strings.Contains(failure.Message, c.want) {
			t.Errorf("%s: %+v, %+v, want %s", name, got, failure, c.want)
		}
	}
	text, failure := response(t, bus, publish(t, bus, containers.NameRunRequest, "not a request"))
	if failure == nil || failure.Code != "bad_request" {
		t.Errorf("%+v, %+v", text, failure)
	}
}

// The arguments of a container client cannot be changed by a request.
func TestClientArguments(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	client := filepath.Join(bin, "docker")
	fakeClient(t, client, `for a in "$@"; do echo "$a"; done`)
	cli := containers.CLI{Command: client, User: "7:8"}
	r := containers.RunRequest{
		RunID: "r1", Image: "debian:12", Command: []string{"sh", "-c", "--privileged"}, Workdir: "/w", Env: []string{"A"},
		Labels: map[string]string{"task": "t", "bus.run.id": "forged"},
		Mounts: []containers.Mount{{Source: "/src", Target: "/w"}, {Source: "/all", Target: "/all", ReadOnly: true}, {Source: "/", Target: "/", ReadOnly: true}},
	}
	exit, err := cli.Run(t.Context(), r)
	host, _ := os.Hostname()
	want := []string{
		"run", "--rm", "--init", "--name", "bus-run-r1", "--label", "bus.run.id=forged", "--label", "task=t",
		"--label", "bus.run.id=r1", "--label", fmt.Sprintf("bus.run.owner=%s/%d", host, os.Getpid()), // the last one counts
		"--user", "7:8", "--env", "HOME=/tmp", "--workdir", "/w",
		"--mount", "type=bind,source=/,target=/,readonly", "--mount", "type=bind,source=/src,target=/w", "--mount", "type=bind,source=/all,target=/all,readonly",
		"--env", "A", "debian:12", "sh", "-c", "--privileged",
	}
	if got := strings.Fields(exit.Stdout); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	fakeClient(t, client, "echo no engine >&2\nexit 125")
	if _, err := cli.Run(t.Context(), r); err == nil || err.Error() != "the container cannot be run: no engine" {
		t.Errorf("%v", err)
	}
}

// A client that was ended does not leave its container.
func TestClientRemovesItsContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := filepath.Join(dir, "docker")
	fakeClient(t, client, `echo "$@" >> `+dir+`/calls
[ "$1" = rm ] || sleep 1000`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	exit, err := (&containers.CLI{Command: client}).Run(ctx, containers.RunRequest{RunID: "r1", Image: "debian"})
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || exit.Code != -1 || !strings.Contains(string(calls), "rm --force bus-run-r1\n") {
		t.Errorf("%+v, %v, calls %s", exit, err, calls)
	}
}

// fakeClient writes a program that is a shell script.
func fakeClient(t *testing.T, name, script string) {
	t.Helper()
	// A process that another test forks meanwhile would have the file open for writing
	// until it calls exec.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Processes are never used in place of an engine that does not answer.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if e, err := containers.Detect(t.Context()); !errors.Is(err, containers.ErrNoEngine) {
		t.Errorf("without a client: %v, %v", e, err)
	}
	user := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	if os.Getuid() == 0 {
		user = ""
	}
	fakeClient(t, filepath.Join(dir, "podman"), "echo '5.0|rootless'")
	for info, want := range map[string]containers.CLI{
		"28.1|[name=seccomp]":  {Command: "docker", User: user},
		"28.1|[name=rootless]": {Command: "docker"},
		"|[]":                  {Command: "podman"}, // the client alone
	} {
		fakeClient(t, filepath.Join(dir, "docker"), "echo '"+info+"'")
		if e, err := containers.Detect(t.Context()); err != nil || *e != want {
			t.Errorf("%s: %+v, %v", info, e, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := containers.Detect(ended); !errors.Is(err, containers.ErrNoEngine) {
		t.Error(err)
	}
}

// An integration removes the containers of one that was killed, and no others. Their
// clients get an answer.
func TestStaleContainersAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := filepath.Join(dir, "docker")
	host, _ := os.Hostname()
	const noProcess = 2_000_000_000
	fakeClient(t, client, fmt.Sprintf(`case "$1" in
ps) printf 'c1\nc2\nc3\nc4\n' ;;
rm) echo "$3" >> %s/removed ;;
inspect) case "$4" in
	c1) echo "stale %[2]s/%[3]d" ;;
	c2) echo "running %[2]s/%[4]d" ;;
	c3) echo "elsewhere other-%[2]s/%[3]d" ;;
	*) exit 1 ;;
	esac ;;
esac`, dir, host, noProcess, os.Getpid()))
	bus := new(memorybus.Bus)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	i := &containers.Integration{Bus: bus, Engine: &containers.CLI{Command: client}, Failed: func(err error) { t.Error(err) }}
	go func() { ended <- i.Serve(ctx) }()
	_, failure := response(t, bus, "")
	cancel()
	<-ended
	if failure == nil || failure.Code != containers.CodeInterrupted {
		t.Errorf("%+v", failure)
	}
	if all := bus.Events(containers.NameRunResponse); len(all) != 1 || all[0].CorrelationID != "stale" {
		t.Errorf("%+v", all)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "removed")); string(text) != "c1\n" || err != nil {
		t.Errorf("removed %q, %v", text, err)
	}
}

// A run that ends with its integration has not taken too long.
func TestRunEndsWithItsIntegration(t *testing.T) {
	t.Parallel()
	bus := new(memorybus.Bus)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	i := &containers.Integration{Bus: bus, Engine: &containers.Process{Path: "/usr/bin:/bin"}, Profiles: map[string]string{"shell": ""}}
	go func() { ended <- i.Serve(ctx) }()
	dir := t.TempDir()
	r := runRequest("sh", "-c", "touch started; sleep 1000")
	r.Workdir, r.Mounts = dir, []containers.Mount{{Source: dir, Target: dir}}
	id := publish(t, bus, containers.NameRunRequest, r)
	testwait.Exists(t, filepath.Join(dir, "started"))
	cancel()
	<-ended
	if got, failure := response(t, bus, id); failure == nil || failure.Code != containers.CodeInterrupted {
		t.Errorf("%+v, %+v", got, failure)
	}
}

// A value that the integration passes on is masked in the output of the run, also where
// the output is cut.
func TestPassedSecretIsMasked(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	t.Setenv("BUS_TEST_KEY", secret)
	for _, pad := range []string{"", "1234", "12345678", "123456789012"} {
		exit, err := (&containers.Process{}).Run(t.Context(), containers.RunRequest{
			RunID: "r1", Env: []string{"BUS_TEST_KEY"},
			Command: []string{"sh", "-c", `printf %s "$1"; i=0; while [ $i -lt 3000 ]; do echo "$BUS_TEST_KEY$BUS_TEST_KEY"; i=$((i+1)); done; echo "$BUS_TEST_KEY" >&2`, "sh", pad},
		})
		if err != nil || exit.Code != 0 || !strings.Contains(exit.Stdout, "***") || !strings.Contains(exit.Stderr, "***") {
			t.Errorf("%+v, %v", exit, err)
		}
		if strings.Contains(exit.Stdout+exit.Stderr, secret[:4]) || strings.Contains(exit.Stdout, secret[12:]) {
			t.Errorf("part of a secret: %q", exit.Stdout)
		}
	}
}
