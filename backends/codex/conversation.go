package codex

import (
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

// conversation is how Codex holds a session: the App Server, over its standard
// streams.
func conversation() *registry.Session {
	return &registry.Session{
		Command: serverCommand,
		Engine: func(agent.Request) session.Engine {
			return &appserver.Engine{Info: appserver.ClientInfo{Name: "bus_agent", Title: "bus-agent", Version: "1"}}
		},
		Protocol:   "appserver",
		Delivery:   session.DeliverRPC,
		AccountEnv: homeEnv,
		Options: registry.Options{
			Model:     true,
			Efforts:   agent.Efforts(),
			Verbosity: agent.Verbosities(),
			Access:    agent.Accesses(),
			AddDirs:   true,
			Resume:    true,
		},
	}
}

// serverCommand builds the argument list of the server. Model, sandbox and
// workdir go with the thread.
func serverCommand(r agent.Request) (agent.Command, error) {
	switch {
	case r.Resolved.Variant == VariantLocal:
		return agent.Command{}, agent.Usagef("%s:%s cannot hold a session: the App Server takes no --oss", ID, VariantLocal)
	case r.TrustWorkspace:
		return agent.Command{}, agent.Usagef("a session of %s cannot trust the workspace: the App Server takes no --trust", ID)
	}
	args := []string{"app-server"}
	// The private home has no settings and no rules, so there is nothing for
	// these to leave out, and the server does not take them.
	args = append(args, slices.DeleteFunc(slices.Clone(r.Resolved.Setup.Args), func(arg string) bool {
		return slices.Contains(ignoreConfig(), arg)
	})...)
	if r.Access == agent.AccessWrite {
		args = append(args, config("sandbox_workspace_write.exclude_slash_tmp", true)...)
		if len(r.AddDirs) > 0 {
			args = append(args, config("sandbox_workspace_write.writable_roots", r.AddDirs)...)
		}
	}
	if r.ReasoningEffort != "" {
		args = append(args, config("model_reasoning_effort", string(r.ReasoningEffort))...)
	}
	if r.Verbosity != "" {
		args = append(args, config("model_verbosity", string(r.Verbosity))...)
	}
	args = append(args, config("analytics.enabled", false)...)
	args = append(args, "--disable", "plugins")
	return agent.Command{Args: append(args, r.Args...)}, nil
}
