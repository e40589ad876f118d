package codex

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

// conversation is how Codex holds a session: the App Server, over its standard
// streams.
func conversation() *registry.Session {
	return &registry.Session{
		Command: serverCommand,
		Prepare: prepareSession,
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

// prepareSession is prepare for the App Server, which gives the model no AGENTS.md
// of a project that it is told not to trust.
func prepareSession(ctx context.Context, r agent.Request, w *instructions.Workspace) (agent.Setup, error) {
	home, ownHome := agent.LookupEnv(r.Env, homeEnv)
	switch {
	case r.TrustWorkspace:
		return prepare(ctx, r, w)
	case !ownHome:
		return prepareHome(r, w, deliverText)
	}
	setup, err := prepareOwnHome(r, home)
	if err != nil {
		return agent.Setup{}, err
	}
	text, err := wholeText(w, &setup)
	if err == nil && text != "" && r.Resume == "" { // a session has it from its first message
		setup.Prefix = text + "\n"
	}
	return setup, err
}

// serverCommand builds the argument list of the server. Model, sandbox and
// workdir go with the thread.
func serverCommand(r agent.Request) (agent.Command, error) {
	setup := r.Resolved.Setup.Args
	_, ownHome := agent.LookupEnv(r.Env, homeEnv)
	switch {
	case r.Resolved.Variant == VariantLocal:
		return agent.Command{}, agent.Usagef("%s:%s cannot hold a session: the App Server takes no --oss", ID, VariantLocal)
	case ownHome && slices.Contains(setup, ignoreConfig()[0]):
		return agent.Command{}, agent.Usagef("a session of %s cannot leave out the settings in %s, which is inside the repository; move it or trust the workspace", ID, homeEnv)
	}
	args := append([]string{"app-server"}, trust(r)...)
	args = append(args, withoutExecFlags(setup)...)
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

// withoutExecFlags leaves out what only exec takes. A private home has no settings
// and no rules, so there is nothing for these flags to leave out.
func withoutExecFlags(setup []string) []string {
	return slices.DeleteFunc(slices.Clone(setup), func(arg string) bool {
		return arg == trustFlag || slices.Contains(ignoreConfig(), arg)
	})
}

// trust says whether the repository's settings count. The server trusts a
// project that nothing is said of as soon as a thread may write in it.
func trust(r agent.Request) []string {
	level := "untrusted"
	if r.TrustWorkspace {
		level = "trusted"
	}
	var projects []string
	for _, dir := range []string{r.Workdir, r.Resolved.Root} {
		for _, name := range []string{dir, physical(dir)} {
			project := quoted(name) + "={trust_level=" + quoted(level) + "}"
			if name != "" && !slices.Contains(projects, project) {
				projects = append(projects, project)
			}
		}
	}
	return []string{"-c", "projects={" + strings.Join(projects, ",") + "}"}
}

// quoted returns text as a string of TOML.
func quoted(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string cannot fail
	}
	return string(quoted)
}
