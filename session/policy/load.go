package policy

import (
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/gitenv"
	"github.com/busdk/bus-agent/internal/statefile"
)

// Load reads the policy in a file of the user, an absolute path. It refuses a file for which
// [Policy.CheckPlace] fails with dirs, and one of another user. An error is of kind
// agent.ErrUsage.
func Load(file string, dirs ...string) (*Policy, error) {
	if err := (&Policy{file: file}).CheckPlace(dirs...); err != nil {
		return nil, err
	}
	text, err := statefile.ReadOwned(file, MaxSize)
	if err != nil {
		return nil, agent.Usagef("policy: %w", err)
	}
	p, err := Parse(text)
	if err != nil {
		return nil, agent.Usagef("%s: %w", file, err)
	}
	p.file = file
	return p, nil
}

// CheckPlace refuses a policy that [Load] has read from a file which an agent or a repository
// can provide: one that is in one of dirs or in a Git repository around one, or whose name
// leads through it. The user's home does not count as a repository. Dirs are the workdir and
// the other folders in which the agent works, relative ones to the current directory. The
// error is of kind agent.ErrUsage.
func (p *Policy) CheckPlace(dirs ...string) error {
	if p.file == "" {
		return nil
	}
	home, _ := os.UserHomeDir() // without one, every repository counts
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		for _, dir := range append(gitenv.Around(dir, home), dir) {
			if instructions.Touches(dir, p.file) {
				return agent.Usagef("policy %s: it is in %s, where the agent works; a repository cannot have the policy, so keep it elsewhere", p.file, dir)
			}
		}
	}
	return nil
}
