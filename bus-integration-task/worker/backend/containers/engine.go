package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/internal/unix"
	"github.com/busdk/bus-integration-task/worker/backend/internal/excerpt"
)

// An Engine runs commands. Its methods may be called concurrently.
type Engine interface {
	// Name is the value of RunResponse.Runtime.
	Name() string

	// Run runs a request that was checked, with the image of its profile, and returns
	// when the command and all its processes have ended. It ends them when ctx ends,
	// within StopGrace. An error means that nothing was run.
	Run(ctx context.Context, r RunRequest) (Exit, error)
}

// StopGrace is how long the end of a run may take.
const StopGrace = 10 * time.Second

// An Exit is how a command ended.
type Exit struct {
	Code           int // -1 if a signal ended it
	Stdout, Stderr string
}

// detectLimit bounds the search for an engine. The docker client waits much longer for
// an engine that does not answer.
const detectLimit = 5 * time.Second

// ErrNoEngine is in the error of [Detect].
var ErrNoEngine = errors.New("neither docker nor podman has an engine that answers")

// Detect returns the engine of docker or podman that answers within a few seconds. With
// docker, whose engine usually runs as root, containers run as the user of this process,
// so that their files can be removed.
func Detect(ctx context.Context) (*CLI, error) {
	ctx, cancel := context.WithTimeout(ctx, detectLimit)
	defer cancel()
	for _, probe := range [][]string{
		{"docker", "info", "--format", "{{.ServerVersion}}|{{.SecurityOptions}}"},
		{"podman", "info", "--format", "{{.Version.Version}}|rootless"}, // its root is this user
	} {
		cmd := exec.CommandContext(ctx, probe[0], probe[1:]...)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		version, options, _ := strings.Cut(strings.TrimSpace(string(out)), "|")
		if err != nil || version == "" {
			continue
		}
		c := &CLI{Command: probe[0]}
		if os.Getuid() > 0 && !strings.Contains(options, "rootless") {
			c.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		}
		return c, nil
	}
	return nil, ErrNoEngine
}

// A CLI runs containers with the command-line client of docker or podman. Its container
// is removed at the end of a run.
type CLI struct {
	Command string // docker, podman or the path of one
	User    string // UID:GID of the command, with /tmp as its HOME; "" for that of the image
}

// Name returns the command.
func (c *CLI) Name() string { return c.Command }

// Run runs a container.
func (c *CLI) Run(ctx context.Context, r RunRequest) (Exit, error) {
	cmd := exec.Command(c.Command, c.arguments(&r)...)
	exit, err := run(ctx, cmd, r.passed())
	const cannotRun = 125 // the exit code of the client itself
	if ctx.Err() != nil || exit.Code < 0 || exit.Code == cannotRun {
		// A client that was killed or has failed can leave its container. It is removed
		// now that the client cannot start it any more.
		remove, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopGrace/2)
		defer cancel()
		_ = exec.CommandContext(remove, c.Command, "rm", "--force", containerName(r.RunID)).Run() // there may be none
	}
	if err == nil && exit.Code == cannotRun && ctx.Err() == nil {
		return Exit{}, errors.New("the container cannot be run: " + strings.TrimSpace(exit.Stderr))
	}
	return exit, err
}

func containerName(runID string) string { return "bus-run-" + runID }

// Labels of containers.
const (
	labelRun   = "bus.run.id"
	labelOwner = "bus.run.owner" // the process that started it
)

// arguments returns the arguments of the client.
func (c *CLI) arguments(r *RunRequest) []string {
	args := []string{"run", "--rm", "--init", "--name", containerName(r.RunID)}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		args = append(args, "--label", name+"="+r.Labels[name])
	}
	args = append(args, "--label", labelRun+"="+r.RunID, "--label", labelOwner+"="+owner(os.Getpid())) // the last one counts
	if c.User != "" {
		args = append(args, "--user", c.User, "--env", "HOME=/tmp")
	}
	if r.Workdir != "" {
		args = append(args, "--workdir", r.Workdir)
	}
	// A later mount can hide an earlier one, so a folder comes before what is in it.
	byDepth := func(a, b Mount) int { return cmp.Compare(len(a.Target), len(b.Target)) }
	for _, m := range slices.SortedStableFunc(slices.Values(r.Mounts), byDepth) {
		mount := "type=bind,source=" + m.Source + ",target=" + m.Target
		if m.ReadOnly {
			mount += ",readonly"
		}
		args = append(args, "--mount", mount)
	}
	for _, name := range r.Env {
		args = append(args, "--env", name) // the client takes the value from its environment
	}
	return append(append(args, r.Image), r.command()...)
}

// Prune removes the containers of processes of this machine that have ended without
// removing them, and returns their run IDs.
func (c *CLI) Prune(ctx context.Context) (runIDs []string, err error) {
	output := func(args ...string) ([]string, error) {
		bounded, cancel := context.WithTimeout(ctx, pruneLimit)
		defer cancel()
		out, err := exec.CommandContext(bounded, c.Command, args...).Output()
		return strings.Split(strings.TrimSpace(string(out)), "\n"), err
	}
	all, err := output("ps", "--all", "--quiet", "--filter", "label="+labelOwner)
	if err != nil || all[0] == "" {
		return nil, err
	}
	for _, container := range all {
		lines, err := output("inspect", "--format", `{{index .Config.Labels "`+labelRun+`"}} {{index .Config.Labels "`+labelOwner+`"}}`, container)
		id, by, _ := strings.Cut(lines[0], " ")
		if err != nil || !runIDForm().MatchString(id) || !isStale(by) {
			continue // it has ended meanwhile, or is in use
		}
		if _, err := output("rm", "--force", container); err != nil {
			return runIDs, err
		}
		runIDs = append(runIDs, id)
	}
	return runIDs, nil
}

// pruneLimit bounds each step of Prune.
const pruneLimit = 30 * time.Second

// owner names a process of this machine.
func owner(pid int) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, pid)
}

// isStale reports whether an owner is a process of this machine that has ended. The first
// process of a container has the same ID as the one before it.
func isStale(by string) bool {
	_, text, _ := strings.Cut(by, "/")
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 || by != owner(pid) {
		return false
	}
	return unix.IsGone(pid) || pid == 1 && os.Getpid() == 1
}

// passed returns the variables that the integration passes on to a run.
func (r *RunRequest) passed() (environ []string) {
	for _, name := range r.Env {
		if value, ok := os.LookupEnv(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// run runs cmd until it ends or ctx does. Then it kills cmd. The secrets of
// passed are masked in its output.
func run(ctx context.Context, cmd *exec.Cmd, passed []string) (Exit, error) {
	stdout, stderr := &excerpt.Text{Limit: MaxOutput}, &excerpt.Text{Limit: MaxOutput}
	// The values that the integration passes on are in no other environment, so only it
	// can mask them. An excerpt could cut one.
	masker := runner.NewMasker(passed)
	maskedOut, maskedErr := masker.Writer(stdout), masker.Writer(stderr)
	cmd.Stdout, cmd.Stderr = maskedOut, maskedErr
	unix.OwnGroup(cmd)
	// Wait returns this long after the command has ended, though a process that it
	// left has the output open.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return Exit{}, err
	}
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ended:
		case <-ctx.Done():
			killGroup(cmd)
		}
	}()
	err := cmd.Wait()
	close(ended)
	<-stopped
	killGroup(cmd)                              // what the command has left
	_, _ = maskedOut.Flush(), maskedErr.Flush() // into memory
	exit := Exit{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.Take(), Stderr: stderr.Take()}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return Exit{}, err
	}
	return exit, nil
}
