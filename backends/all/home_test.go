package all_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// A home that the repository can have filled is left out or refuses the run,
// whichever variable names it. A repository that is HOME is the user's.
func TestHomeInTheRepositoryCountsWithTrustAlone(t *testing.T) {
	t.Parallel()
	for _, rt := range registry.Default().All() {
		if rt.Home.Folder == "" || rt.Run.Prepare == nil {
			continue
		}
		for name, c := range map[string]struct {
			environ func(root string) []string
			trust   bool
			counts  bool
		}{
			"HOME outside":           {func(root string) []string { return []string{"HOME=" + filepath.Dir(root)} }, false, true},
			"HOME inside":            {func(root string) []string { return []string{"HOME=" + filepath.Join(root, "sub")} }, false, false},
			"HOME inside, trusted":   {func(root string) []string { return []string{"HOME=" + filepath.Join(root, "sub")} }, true, true},
			"HOME is the root":       {func(root string) []string { return []string{"HOME=" + root} }, false, true},
			"HOME through a link":    {func(root string) []string { return []string{"HOME=" + filepath.Join(root, "link")} }, false, false},
			"variable outside":       {func(root string) []string { return moved(rt, filepath.Dir(root)) }, false, true},
			"variable inside":        {func(root string) []string { return moved(rt, filepath.Join(root, "sub")) }, false, false},
			"variable is the root":   {func(root string) []string { return moved(rt, root) }, false, false},
			"variable is relative":   {func(string) []string { return moved(rt, "sub") }, false, false},
			"variable of HOME's own": {func(root string) []string { return append(moved(rt, filepath.Join(root, "sub")), "HOME="+root) }, false, true},
		} {
			if c.environ("/repo") == nil { // no variable moves its home
				continue
			}
			t.Run(rt.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				root := filepath.Join(t.TempDir(), "repo")
				inv := registry.Invocation{Workdir: root, Root: root, Access: agent.AccessWrite, TrustWorkspace: c.trust, Environ: c.environ(root)}
				for _, dir := range []string{root, filepath.Join(root, "sub"), filepath.Dir(root)} {
					for _, login := range append(rt.Home.Logins, "x") {
						for _, folder := range []string{".", rt.Home.Folder} {
							put(t, filepath.Join(dir, folder, login))
						}
					}
				}
				put(t, filepath.Join(root, ".git/HEAD"))
				if err := os.Symlink(".", filepath.Join(root, "link")); err != nil {
					t.Fatal(err)
				}
				setup, err := prepareIn(t, rt, inv)
				if err != nil && !errors.Is(err, agent.ErrUsage) {
					t.Fatal(err)
				}
				if counted := err == nil && hasLogin(rt, setup); counted != c.counts {
					t.Errorf("counts: %t, want %t (%v, warnings %q)", counted, c.counts, err, setup.Warnings)
				}
				if setup.Close != nil {
					setup.Close(t.Context())
				}
			})
		}
	}
}

// moved returns an environment in which the variable of rt names dir.
func moved(rt registry.Runtime, dir string) []string {
	if rt.Home.Env == "" {
		return nil
	}
	return []string{rt.Home.Env + "=" + dir}
}

func put(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func prepareIn(t *testing.T, rt registry.Runtime, inv registry.Invocation) (registry.Setup, error) {
	t.Helper()
	w := backendtest.Workspace(t, inv.Workdir)
	return rt.Run.Prepare(t.Context(), inv, w)
}

// hasLogin reports whether a CLI finds a login of the user: in the private home,
// or in that of the user.
func hasLogin(rt registry.Runtime, setup registry.Setup) bool {
	private, ok := agent.LookupEnv(setup.Env, rt.Home.Env)
	return !ok || slices.ContainsFunc(rt.Home.Logins, func(login string) bool {
		_, err := os.Stat(filepath.Join(private, login))
		return err == nil
	})
}
