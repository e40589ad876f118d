package codex

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// conversation describes sessions: Codex runs as App Server on its standard streams.
func conversation() *registry.Session {
	return &registry.Session{
		Use: registry.Use{
			Options: registry.Options{
				Model:     true,
				Efforts:   agent.Efforts(),
				Verbosity: agent.Verbosities(),
				Access:    agent.Accesses(),
				AddDirs:   true,
				Resume:    true,

				Attachments: agent.ImageTypes(),

				AppendSystemPrompt: true,
				MCPServers:         true,
			},
			Check:   checkSession,
			Prepare: prepareSession,
			Command: serverCommand,
		},
		Engine: func(registry.Invocation) engine.Engine {
			return &appserver.Engine{Info: appserver.ClientInfo{Name: "bus_agent", Title: "bus-agent", Version: "1"}}
		},
		Protocol: "appserver",
		Delivery: engine.DeliverRPC,
	}
}

// checkSession returns why the App Server cannot be used.
func checkSession(inv registry.Invocation) error {
	if inv.Variant == VariantLocal {
		return agent.Usagef("%s:%s cannot hold a session: the App Server takes no --oss", ID, VariantLocal)
	}
	return check(inv)
}

// prepareSession is prepareTalk without the flags that only exec accepts. A private
// home has no settings and no rules but those that the user wants, so these flags are
// not needed.
func prepareSession(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup, err := prepareTalk(ctx, inv, w)
	setup.Args = slices.DeleteFunc(setup.Args, func(arg string) bool {
		return arg == trustFlag || slices.Contains(ignoreConfig(), arg)
	})
	return setup, err
}

// prepareTalk is prepare for the App Server, which ignores the AGENTS.md of a project
// that its settings do not trust.
func prepareTalk(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	_, ownHome := agent.LookupEnv(inv.Env, homeEnv)
	switch {
	case inv.TrustWorkspace:
		return prepare(ctx, inv, w)
	case !ownHome:
		return prepareHome(inv, w, deliverText)
	}
	setup, err := prepareOwnHome(inv)
	if err == nil && setup.Args != nil {
		err = agent.Usagef("a session of %s cannot leave out the settings in %s; use another folder, or the options --trust-workspace or --user-config on", ID, homeEnv)
	}
	if err != nil {
		return registry.Setup{}, err
	}
	err = deliverPrefix(inv, w, &setup)
	return setup, err
}

// serverCommand builds the argument list of the server. Model, sandbox and
// workdir go with the thread.
func serverCommand(inv registry.Invocation) (agent.Command, error) {
	args := append([]string{"app-server"}, trust(inv)...)
	if inv.Access == agent.AccessWrite {
		args = append(args, config("sandbox_workspace_write.exclude_slash_tmp", true)...)
		if len(inv.AddDirs) > 0 || inv.UserConfig == agent.UserConfigOn {
			args = append(args, config("sandbox_workspace_write.writable_roots", append([]string{}, inv.AddDirs...))...)
		}
	}
	if inv.ReasoningEffort != "" {
		args = append(args, config("model_reasoning_effort", string(inv.ReasoningEffort))...)
	}
	if inv.Verbosity != "" {
		args = append(args, config("model_verbosity", string(inv.Verbosity))...)
	}
	args = append(args, systemPrompt(inv)...)
	args = append(args, config("analytics.enabled", false)...)
	args = append(args, "--disable", "plugins")
	return agent.Command{Args: append(args, inv.Args...)}, nil
}

// trust sets whether the repository's settings are used. Without a value, the server
// trusts a project as soon as a thread may write in it.
func trust(inv registry.Invocation) []string {
	level := "untrusted"
	if inv.TrustWorkspace {
		level = "trusted"
	}
	var projects []string
	for _, dir := range folders(inv) {
		for _, name := range []string{dir, physical(dir)} {
			project := encode(name) + "={trust_level=" + encode(level) + "}"
			if name != "" && !slices.Contains(projects, project) {
				projects = append(projects, project)
			}
		}
	}
	return []string{"-c", "projects={" + strings.Join(projects, ",") + "}"}
}

// folders returns the folders from the workdir up to the root of the repository. The
// settings in each count if the user trusts that folder.
func folders(inv registry.Invocation) []string {
	all := []string{inv.Workdir}
	for dir := inv.Workdir; dir != inv.Root && dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// physical returns file without symlinks, or unchanged if that fails.
func physical(file string) string {
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		return resolved
	}
	return file
}
