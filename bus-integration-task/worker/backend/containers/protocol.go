package containers

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// Names of the events.
const (
	NameRunRequest     = "bus.containers.run.request"
	NameRunResponse    = "bus.containers.run.response"
	NameDeleteRequest  = "bus.containers.delete.request"
	NameDeleteResponse = "bus.containers.delete.response"
)

// CodeInterrupted is the code of the error that answers a run which ended with its
// integration. The run can be requested again.
const CodeInterrupted = "interrupted"

// CodeBusy is the code of the error that answers a run for which too many others wait.
const CodeBusy = "busy"

// A RunRequest is the payload of NameRunRequest. It has either a Profile, with Args as the
// command, or an Image with a Command.
type RunRequest struct {
	RunID          string            `json:"run_id,omitempty"` // at most 100 letters, digits, "-", "_" and "."
	Profile        string            `json:"profile,omitempty"`
	Image          string            `json:"image,omitempty"`
	Args           []string          `json:"args,omitempty"`
	Command        []string          `json:"command,omitempty"`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"` // 0 is DefaultTimeout
	Workdir        string            `json:"workdir,omitempty"`         // absolute
	Mounts         []Mount           `json:"mounts,omitempty"`
	Env            []string          `json:"env,omitempty"` // names
	Labels         map[string]string `json:"labels,omitempty"`
}

// A Mount is a folder of the host in the container. Both paths are absolute.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// A RunResponse is the payload of NameRunResponse.
type RunResponse struct {
	RunID      string   `json:"run_id"`
	RunnerName string   `json:"runner_name,omitempty"`
	Image      string   `json:"image,omitempty"`
	Args       []string `json:"args,omitempty"`
	State      State    `json:"state"`
	ExitCode   int      `json:"exit_code"` // -1 if the command has none
	Stdout     string   `json:"stdout"`    // at most MaxOutput, without its middle
	Stderr     string   `json:"stderr"`    // likewise
	DurationMS int64    `json:"duration_ms"`
	Runtime    string   `json:"runtime,omitempty"` // docker, podman or process
}

// A DeleteRequest is the payload of NameDeleteRequest.
type DeleteRequest struct {
	RunID string `json:"run_id"`
}

// A DeleteResponse is the payload of NameDeleteResponse.
type DeleteResponse struct {
	Deleted bool   `json:"deleted"`
	RunID   string `json:"run_id"`
}

// A State is how a run ended.
type State string

// The states.
const (
	StateCompleted State = "completed" // with exit code 0
	StateFailed    State = "failed"    // with another one, or by a signal
	StateTimeout   State = "timeout"   // it took too long
	StateDeleted   State = "deleted"   // by a request
)

// Limits of a run.
const (
	DefaultTimeout = 30 * time.Minute
	MaxTimeout     = 24 * time.Hour
	MaxOutput      = 256 << 10 // bytes of each output
	maxMounts      = 100
	maxArgs        = 1000
)

// Timeout returns how long the command may take.
func (r *RunRequest) Timeout() time.Duration {
	if r.TimeoutSeconds == 0 {
		return DefaultTimeout
	}
	return time.Duration(r.TimeoutSeconds) * time.Second
}

// command returns the command and its arguments.
func (r *RunRequest) command() []string {
	if r.Profile != "" {
		return r.Args
	}
	return append(slices.Clone(r.Command), r.Args...)
}

var (
	runIDForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`) })
	variableForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`) })
	imageForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./:@-]{0,499}$`) })
)

// Check returns an agent.ErrUsage error for a request that cannot be run.
func (r *RunRequest) Check() error {
	switch {
	case !runIDForm().MatchString(r.RunID):
		return agent.Usagef("run_id %q is not of letters, digits, dashes, underscores and dots", r.RunID)
	case (r.Profile == "") == (r.Image == ""):
		return agent.Usagef("a run needs either a profile or an image")
	case r.Image != "" && !imageForm().MatchString(r.Image):
		return agent.Usagef("image %q is not the name of an image", r.Image)
	case len(r.command()) > maxArgs:
		return agent.Usagef("the command has more than %d arguments", maxArgs)
	case slices.ContainsFunc(r.command(), func(arg string) bool { return strings.ContainsRune(arg, 0) }):
		return agent.Usagef("the command has a NUL character")
	case r.TimeoutSeconds < 0 || r.TimeoutSeconds > int(MaxTimeout.Seconds()):
		return agent.Usagef("timeout_seconds %d is not between 0 and %d", r.TimeoutSeconds, int(MaxTimeout.Seconds()))
	case r.Workdir != "" && !clean(r.Workdir):
		return agent.Usagef("workdir %q is not a plain absolute path", r.Workdir)
	case len(r.Mounts) > maxMounts:
		return agent.Usagef("the run has more than %d mounts", maxMounts)
	}
	for _, m := range r.Mounts {
		for _, path := range []string{m.Source, m.Target} {
			// The CLIs of engines take mounts as comma-separated values.
			if !clean(path) || strings.ContainsAny(path, ",\"\n\r\x00") {
				return agent.Usagef("mount %q is not a plain absolute path", path)
			}
		}
	}
	for _, name := range r.Env {
		if !variableForm().MatchString(name) {
			return agent.Usagef("%q is not the name of a variable", name)
		}
	}
	return nil
}

func clean(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }
