package delegation

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// workdir returns the folder that an agent works in: dir, relative to the workdir of the
// broker, or that workdir. It must be inside it and, if there are roots, inside one of
// them. Links are followed first.
func (b *Broker) workdir(dir string, roots []string) (string, error) {
	var allowed []string
	for _, root := range roots {
		switch real, err := realDirectory(root); {
		case err != nil: // it allows nothing
		case inside(real, b.settings.Workdir):
			allowed = append(allowed, b.settings.Workdir)
		case inside(b.settings.Workdir, real):
			allowed = append(allowed, real)
		}
	}
	if len(roots) == 0 {
		allowed = []string{b.settings.Workdir}
	}
	if len(allowed) == 0 {
		return "", agent.Usagef("the roots of the client are outside the workdir %s; nothing was started", b.settings.Workdir)
	}
	dir = cmp.Or(dir, allowed[0])
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(b.settings.Workdir, dir)
	}
	real, err := realDirectory(dir)
	if err != nil {
		return "", agent.Usagef("workdir %q: %w; nothing was started", dir, err)
	}
	for _, root := range allowed {
		if inside(root, real) {
			return real, nil
		}
	}
	return "", agent.Usagef("workdir %q is outside %s; nothing was started", dir, strings.Join(allowed, ", "))
}

// inside reports whether the folder dir is root or below it. Both are absolute and have
// no links.
func inside(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}
