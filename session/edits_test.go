package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestMayEdit(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	file := filepath.Join(g.Workdir, "file")
	g.Check(t, func(path string) bool {
		got := start.MayEdit(agent.AccessWrite, []string{path})
		if both := start.MayEdit(agent.AccessWrite, []string{file, path}); both != got {
			t.Errorf("%q beside another file: %v", path, both)
		}
		if !start.MayEdit(agent.AccessFull, []string{path}) || start.MayEdit(agent.AccessRead, []string{path}) || start.MayEdit("", []string{path}) {
			t.Errorf("%q: full access does not include it, or less than write access does", path)
		}
		return got
	})
	if start.MayEdit(agent.AccessWrite, nil) {
		t.Error("a change of no file is included")
	}
}

// A workdir that is a bare repository holds what Git runs.
func TestMayEditNothingOfABareRepository(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	start.Workdir = filepath.Join(g.Workdir, "bare")
	for _, name := range []string{"config", "hooks/pre-commit", "new"} {
		if start.MayEdit(agent.AccessWrite, []string{name}) {
			t.Errorf("%s is included", name)
		}
	}
	if err := os.Remove(filepath.Join(start.Workdir, "HEAD")); err != nil {
		t.Fatal(err)
	}
	if !start.MayEdit(agent.AccessWrite, []string{"config"}) {
		t.Error("a folder that is no repository is protected")
	}
}
