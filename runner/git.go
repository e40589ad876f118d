package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/gitenv"
)

// settleGit finds the programs that the git configuration of the repositories in these
// folders would run when a CLI calls git, and the variables that keep them from
// running. It refuses files for which git would wait. It reports whether it left folders
// out.
func (p *prepared) settleGit(ctx context.Context, below []string) (partial bool, err error) {
	result, err := gitenv.Neutralize(ctx, gitenv.Query{Workdir: p.req.Workdir, Below: below, Environ: p.inv.Environ, Trusted: p.req.TrustWorkspace})
	switch {
	case errors.Is(err, gitenv.ErrBlocks):
		return false, agent.Usagef("%w; nothing was started", err)
	case err != nil:
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
	if len(result.Commands) > 0 {
		p.warn("an unfinished rebase has commands, which git rebase --continue runs: " + first(result.Commands, "files"))
	}
	return result.Partial, nil
}

// gitFolders returns the folders in which repositories are searched for, those that are
// most likely to be used first.
func (p *prepared) gitFolders() (below []string) {
	home := homeOf(p.inv.Environ)
	folders := append([]string{p.inv.Root, p.req.Workdir}, p.req.AddDirs...)
	for _, dir := range slices.Clone(folders[1:]) {
		folders = append(folders, gitenv.Around(dir, home)[0])
	}
	for _, dir := range folders {
		if !gitenv.IsHomeOrRoot(dir, home) && !slices.Contains(below, dir) {
			below = append(below, dir)
		}
	}
	return below
}

// homeOf returns HOME in environ.
func homeOf(environ []string) string {
	home, _ := agent.LookupEnv(environ, "HOME")
	return home
}
