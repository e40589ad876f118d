package instructions_test

import (
	"os"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
)

// TestHostileLinksTouchNothingOutside adds and removes homes, blocks and list entries while an
// attacker continuously swaps directories in the workdir for links to the outside. The
// calls may fail.
func TestHostileLinksTouchNothingOutside(t *testing.T) {
	t.Parallel()
	dir, outside := tempDir(t), tempDir(t)
	secret := map[string]string{
		"bus/0123456789abcdef/login": "x", "bus/sessions/s": "x", "bus/.gitignore": "*\n",
	}
	write(t, outside, secret)
	before := snapshot(t, outside)

	stop := make(chan struct{})
	var attacker, victims sync.WaitGroup
	root, err := os.OpenRoot(dir) // the attacker itself must not follow its links
	must(t, err)
	defer root.Close()
	for _, name := range []string{".gemini", ".codex", ".codex/bus", "docs"} {
		attacker.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				// An existing file is moved away to make room for the link.
				root.Rename(name, name+".real")
				root.Symlink(outside, name)
				if info, err := root.Lstat(name); err == nil && !info.IsDir() {
					root.Remove(name)
				}
				root.Rename(name+".real", name)
				if i%2 == 0 {
					root.MkdirAll(name, 0o755)
				}
			}
		})
	}
	for range 2 {
		w := open(t, dir, false)
		victims.Go(func() {
			for range 60 {
				if h, err := w.NewHome(parent); err == nil {
					_ = h.WriteFile("a/b", []byte("x"), 0o600)
					_ = h.Link("/nowhere", "link")
					_ = h.Keep("a", "a")
					_ = h.CopyIn("a", "c")
					_, _ = h.FindKept(func(string) bool { return true })
					_ = h.Remove()
				}
				_, _ = w.ReadFile(".gemini/settings.json", 100)
				_ = w.AddToJSON(list)
				_ = w.AddBlock(block)
				_ = w.RemoveFromJSON(list)
				_ = w.RemoveBlock(block)
				_, _ = instructions.Clean(t.Context(), dir, owned)
			}
		})
	}
	victims.Wait()
	close(stop)
	attacker.Wait()
	if diff := cmp.Diff(before, snapshot(t, outside)); diff != "" {
		t.Error(diff)
	}
}
