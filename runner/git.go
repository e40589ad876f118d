package runner

import (
	"context"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/gitenv"
)

// settleGit finds what the git configuration of the repository would run, which
// CLIs do by calling git before the agent's first tool call, and how the
// environment keeps it from running.
func (p *prepared) settleGit(ctx context.Context) error {
	if p.req.TrustWorkspace {
		return nil
	}
	q := gitenv.Query{Workdir: p.req.Workdir, Environ: p.req.Resolved.Environ}
	top := p.req.Resolved.Root
	if isHomeOrRoot(top, q.Environ) {
		top = p.req.Workdir
	}
	for _, dir := range append([]string{top}, p.req.AddDirs...) {
		if !isHomeOrRoot(dir, p.req.Resolved.Environ) {
			q.Below = append(q.Below, dir)
		}
	}
	result, err := gitenv.Neutralize(ctx, q)
	switch {
	case context.Cause(ctx) != nil:
		return canceled(p.req.Runtime, context.Cause(ctx))
	case err != nil:
		return agent.Usagef("git configuration of the repository: %w; nothing was started, use --trust-workspace to let it run", err)
	}
	p.gitEnv = result.Env
	for _, entry := range result.Env {
		name, _, _ := strings.Cut(entry, "=")
		p.enforced = append(p.enforced, name)
	}
	if text := result.String(); text != "" {
		p.warn("git configuration and hooks of the repository are left out: " + text + "; use --trust-workspace to let git run them")
	}
	return nil
}

// isHomeOrRoot reports whether dir is the user's home or the root of the file
// system, which are not repositories although they hold many.
func isHomeOrRoot(dir string, environ []string) bool {
	home, _ := agent.LookupEnv(environ, "HOME")
	return sameFile(dir, "/") || sameFile(dir, home)
}
