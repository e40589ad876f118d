package backend

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// An AppServer describes the Codex App Server of the backend codex-appserver. The zero
// value is the command codex in PATH with its defaults.
type AppServer struct {
	// Command is the executable: a name in PATH, or an absolute path.
	Command string

	// Args are the arguments of Command. Those that every start has anyway,
	// app-server and --listen stdio://, are left out; no other address is possible.
	Args []string

	// NetworkAccess lets commands in the workspace-write sandbox use the network; nil
	// leaves the default of Codex, which is false.
	NetworkAccess *bool

	// InheritEnv is which variables the commands of the agent inherit: all, core or
	// none. Empty leaves the default of Codex.
	InheritEnv string
}

// Session returns the backend. Errors are of kind agent.ErrUsage.
func (a AppServer) Session(r runner.Runner) (*Session, error) {
	args, err := a.arguments()
	if err != nil {
		return nil, err
	}
	b := &Session{Runner: r, Runtime: runtimeAppServer, Args: args}
	if a.Command != "" && a.Command != runtimeAppServer {
		err = b.replaceExecutable(a.Command)
	}
	if err == nil {
		err = b.Check()
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// arguments returns the arguments after those that every start has.
func (a AppServer) arguments() ([]string, error) {
	args := slices.Clone(a.Args)
	if len(args) > 0 && args[0] == "app-server" {
		args = args[1:]
	}
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		n := 1
		if flag != "--listen" {
			continue
		}
		if !joined && i+1 < len(args) {
			value, n = args[i+1], 2
		}
		if value != "stdio://" {
			return nil, agent.Usagef("the App Server cannot listen on %q; use stdio://", value)
		}
		args = slices.Delete(args, i, i+n)
		i--
	}
	if a.NetworkAccess != nil {
		args = append(args, "-c", fmt.Sprintf("sandbox_workspace_write.network_access=%t", *a.NetworkAccess))
	}
	switch a.InheritEnv {
	case "":
	case "all", "core", "none":
		args = append(args, "-c", fmt.Sprintf("shell_environment_policy.inherit=%q", a.InheritEnv))
	default:
		return nil, agent.Usagef("inherited environment %q is unknown; use all, core or none", a.InheritEnv)
	}
	return args, nil
}

// replaceExecutable makes command the executable of the runtime. For a path, its folder
// comes first in PATH.
func (b *Session) replaceExecutable(command string) error {
	name := filepath.Base(command)
	if name != command {
		if !filepath.IsAbs(command) {
			return agent.Usagef("command %q is neither a name nor an absolute path", command)
		}
		environ := inherited(b.Runner.Environ)
		path, _ := agent.LookupEnv(environ, "PATH")
		b.Runner.Environ = append(environ, "PATH="+filepath.Dir(command)+string(filepath.ListSeparator)+path)
	}
	from := b.Runner.Registry
	if from == nil {
		from = registry.Default()
	}
	all := from.Clone()
	rt, ok := all.Lookup(b.Runtime)
	if !ok {
		return nil // Check reports it
	}
	rt.Executables = []string{name}
	if err := all.Replace(rt); err != nil {
		return agent.Usagef("command %q: %w", command, err)
	}
	b.Runner.Registry = all
	return nil
}
