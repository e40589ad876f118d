package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// In a terminal the repository is not trusted unless the caller trusts it.
func TestInteractiveCommand(t *testing.T) {
	t.Parallel()
	for trusted, level := range map[bool]string{false: "untrusted", true: "trusted"} {
		r := registry.Invocation{Workdir: "/w", Access: agent.AccessWrite, TrustWorkspace: trusted, Args: []string{"--mine"}}
		r.Root = "/w"
		r.Resume = "id-1"
		c, err := interactiveCommand(r)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Join(c.Args, "\n")
		if !strings.Contains(line, `projects={"/w"={trust_level="`+level+`"}}`) || !strings.HasSuffix(line, "--mine\nresume\nid-1") ||
			slices.Contains(c.Args, trustFlag) || slices.Contains(c.Args, ignoreConfig()[0]) {
			t.Errorf("trusted %t: %q", trusted, c.Args)
		}
	}
}

func TestOnlySession(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if id := onlySession(home); id != "" {
		t.Errorf("session %q of an empty home", id)
	}
	const id = "01a2009e-07aa-77e3-ad46-298e3ad71258"
	dir := filepath.Join(home, sessionTree, "2026", "11", "22")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rollout-2026-11-22T00-18-06-"+id+".jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := onlySession(home); got != id {
		t.Errorf("session %q, want %q", got, id)
	}
}
