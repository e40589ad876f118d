package runner

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/gitenv"
)

// settleGit finds the programs that the git configuration of the repositories in these
// folders would run when a CLI calls git, and the variables that keep them from
// running. It reports whether it left folders out.
func (p *prepared) settleGit(ctx context.Context, below []string) (partial bool, err error) {
	if p.req.TrustWorkspace {
		return false, nil
	}
	result, err := gitenv.Neutralize(ctx, gitenv.Query{Workdir: p.req.Workdir, Below: below, Environ: p.inv.Environ})
	if err != nil {
		return false, agent.Usagef("git configuration of the repository: %w; nothing was started, use --trust-workspace to let it run", err)
	}
	p.gitEnv = result.Env
	for _, entry := range result.Env {
		name, _, _ := strings.Cut(entry, "=")
		p.enforced = append(p.enforced, name)
	}
	if text := result.String(); text != "" {
		text = "git configuration and hooks of the repository are left out: " + text + "; use --trust-workspace to let git run them"
		if result.LFS {
			text += ", or configure git-lfs for all repositories (\"git lfs install\")"
		}
		p.warn(text)
	}
	return result.Partial, nil
}

// gitFolders returns the folders in which repositories are searched for, those that are
// most likely to be used first.
func (p *prepared) gitFolders() (below []string) {
	if p.req.TrustWorkspace {
		return nil
	}
	top := p.inv.Root
	if isHomeOrRoot(top, p.inv.Environ) {
		top = p.req.Workdir
	}
	folders := append([]string{top}, p.req.AddDirs...)
	for _, dir := range folders {
		folders = append(folders, outermost(dir, p.inv.Environ))
	}
	for _, dir := range folders {
		if !isHomeOrRoot(dir, p.inv.Environ) && !slices.Contains(below, dir) {
			below = append(below, dir)
		}
	}
	return below
}

// outermost returns the topmost folder around dir that git could take for a repository.
// The user's home and the root of the file system do not count.
func outermost(dir string, environ []string) string {
	if physical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = physical
	}
	home, _ := agent.LookupEnv(environ, "HOME")
	if physical, err := filepath.EvalSymlinks(home); err == nil {
		home = physical
	}
	return gitenv.Outermost(dir, func(dir string) bool { return dir == "/" || dir == home })
}

// isHomeOrRoot reports whether dir is the user's home or the root of the file system,
// which are not searched for repositories.
func isHomeOrRoot(dir string, environ []string) bool {
	home, _ := agent.LookupEnv(environ, "HOME")
	return sameFile(dir, "/") || sameFile(dir, home)
}
