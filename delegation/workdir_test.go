package delegation_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
)

func TestAgentsStayInTheWorkdir(t *testing.T) {
	t.Parallel()
	s := settings(t)
	outside := t.TempDir()
	for _, dir := range []string{"sub/deep", "other"} {
		if err := os.MkdirAll(filepath.Join(s.Workdir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out": outside, "in": filepath.Join(s.Workdir, "sub")} {
		if err := os.Symlink(target, filepath.Join(s.Workdir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Workdir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := broker(t, s)
	sub := filepath.Join(s.Workdir, "sub")
	for _, c := range []struct {
		dir     string
		roots   []string
		allowed bool
	}{
		{dir: "", allowed: true},
		{dir: ".", allowed: true},
		{dir: "sub", allowed: true},
		{dir: sub, allowed: true},
		{dir: "sub/../sub/deep", allowed: true},
		{dir: "in", allowed: true},
		{dir: ".."},
		{dir: "out"},
		{dir: "out/."},
		{dir: outside},
		{dir: "/"},
		{dir: "file"},
		{dir: "missing"},
		{dir: "", roots: []string{s.Workdir}, allowed: true},
		{dir: "", roots: []string{"/"}, allowed: true},
		{dir: "", roots: []string{sub}, allowed: true},
		{dir: "sub/deep", roots: []string{outside, sub}, allowed: true},
		{dir: "other", roots: []string{sub}},
		{dir: ".", roots: []string{sub}},
		{dir: "", roots: []string{outside}},
		{dir: outside, roots: []string{outside}},
		{dir: "", roots: []string{filepath.Join(s.Workdir, "missing")}},
	} {
		_, err := b.Run(t.Context(), delegation.Task{Prompt: "x", Workdir: c.dir, Roots: c.roots}, nil)
		if (err == nil) != c.allowed || err != nil && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("workdir %q with the roots %q: %v", c.dir, c.roots, err)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]delegation.Settings{
		"access":  {Access: "bogus"},
		"bound":   {Runs: -1},
		"workdir": {Workdir: filepath.Join(t.TempDir(), "missing")},
	} {
		if _, err := delegation.New(s); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
