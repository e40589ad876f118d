//go:build linux

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/runner"
)

// The next command on the session of a killed owner removes the folders of the session
// and keeps what its private home lists.
func TestFoldersOfAKilledOwner(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"stop", "resume"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			s := startSupervised(t)
			if err := syscall.Kill(s.entry.OwnerPID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			isGone(t, s.entry.Owner)
			for _, id := range s.children {
				isGone(t, id)
			}
			const parent = ".codex/bus"
			home := s.path("work/" + parent + "/0123456789abcdef")
			for name, text := range map[string]string{
				".bus-agent-owner":   s.entry.Owner + "\n",
				".bus-agent-salvage": `{"tree":"sessions","kept":".","patterns":["*"]}`,
				"sessions/said":      "hello",
			} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			places := instructions.Locations{
				Workdir: s.path("work"), Owned: []instructions.Owned{{Home: parent}}, TempDirs: runner.TempDirs(nil),
			}
			kinds := map[string]bool{}
			for _, f := range places.Stale(t.Context(), s.entry.OwnerPID) {
				kinds[f.What] = true
			}
			if !kinds["private home"] || !kinds["temporary files"] {
				t.Fatalf("left are %v", kinds)
			}
			cmd := s.command("session", next, "one")
			cmd.Dir = s.path("home")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if left := places.Stale(t.Context(), s.entry.OwnerPID); len(left) > 0 {
				t.Errorf("left are %+v\n%s", left, out)
			}
			if text, err := os.ReadFile(s.path("work/" + parent + "/sessions/said")); err != nil || string(text) != "hello" {
				t.Errorf("kept is %q, %v", text, err)
			}
			s.does("session", "stop", "one")
		})
	}
}
