package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/gitenv"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/registry"
)

// checkFolders searches the workdir, the repository and the added directories once,
// for programs that git would run and for files that the CLI reads by itself.
func (p *prepared) checkFolders(ctx context.Context, rt registry.Runtime) error {
	var reads []instructions.Read
	if rt.Reads != nil {
		reads = rt.Reads(p.inv)
	}
	below := p.gitFolders()
	// The workdir first: beyond the limit the others are left out.
	roots := slices.Concat([]string{p.chain.Workdir}, p.req.AddDirs, below)
	survey, err := tree.NewSurvey(ctx, p.entries, append(instructions.Names(reads), gitenv.Names()...), roots...)
	if err != nil {
		return err
	}
	ctx = tree.WithSurvey(ctx, survey)
	partial, err := p.settleGit(ctx, below)
	if err != nil {
		return err
	}
	if err := p.checkReads(ctx, reads); err != nil {
		return err
	}
	if left := survey.Left("/"); len(left) > 0 {
		what := "files that " + rt.Name + " reads by itself"
		if partial {
			what = "git configuration (git's hooks and file system monitor are off) and " + what
		}
		p.warn(fmt.Sprintf("more than %d files and folders: not searched for %s: %s; start in a smaller workdir to have all searched", p.entries, what, first(left, "folders")))
	}
	return nil
}

// first lists the first few names and the number of the others.
func first(names []string, what string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more %s", strings.Join(names[:most], ", "), more, what)
	}
	return strings.Join(names, ", ")
}

// checkReads refuses files in the workdir and the added directories that the CLI reads
// by itself and that lead out of the repository or could block it.
func (p *prepared) checkReads(ctx context.Context, reads []instructions.Read) error {
	complete, err := p.chain.CheckReads(ctx, reads, p.req.TrustWorkspace)
	if err != nil {
		return err
	}
	p.chain.Unchecked = !complete
	// Discover has checked AGENTS.md in the workdir alone.
	reads = slices.Clone(reads)
	for i := range reads {
		if reads[i].Name == instructions.FileName {
			reads[i].Where = instructions.Everywhere
		}
	}
	for _, dir := range p.req.AddDirs {
		chain, err := instructions.Discover(dir)
		if err != nil {
			return err
		}
		if complete, err = chain.CheckReads(ctx, reads, p.req.TrustWorkspace); err != nil {
			return fmt.Errorf("the added directory %s: %w", dir, err)
		}
		p.chain.Unchecked = p.chain.Unchecked || !complete
	}
	return nil
}
