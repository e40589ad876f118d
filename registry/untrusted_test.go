package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/registry"
)

// A home of a CLI does not count if a repository around the workdir controls it.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"outer/inner", "outer/home", "main/home", "user/project"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	outer, inner, user := filepath.Join(dir, "outer"), filepath.Join(dir, "outer/inner"), filepath.Join(dir, "user")
	for name, c := range map[string]struct {
		inv  registry.Invocation
		home string
		want bool
	}{
		"around":         {registry.Invocation{Root: inner, Repositories: []string{outer}}, "outer/home", true},
		"trusted":        {registry.Invocation{Root: inner, Repositories: []string{outer}, TrustWorkspace: true}, "outer/home", false},
		"main worktree":  {registry.Invocation{Root: inner, Repositories: []string{inner, filepath.Join(dir, "main")}}, "main/home", true},
		"elsewhere":      {registry.Invocation{Root: inner, Repositories: []string{outer}}, "main/home", false},
		"the user's":     {registry.Invocation{Root: user, Repositories: []string{filepath.Join(user, "project")}, Environ: []string{"HOME=" + user}}, "user/.cli", false},
		"in the workdir": {registry.Invocation{Root: user, Repositories: []string{filepath.Join(user, "project")}, Environ: []string{"HOME=" + user}}, "user/project/.cli", true},
	} {
		if got := c.inv.Untrusted(filepath.Join(dir, c.home)); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
