package described_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
)

// What a definition sets is the user's decision, but no relative entry of a search
// path makes the repository decide what runs.
func TestVariablesOfADefinitionLeadNowhereIntoTheRepository(t *testing.T) {
	t.Parallel()
	bin, repo := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mine"), []byte("#!/bin/sh\n/usr/bin/env\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sub", ".git"} {
		if err := os.Mkdir(filepath.Join(repo, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, ".git", "HEAD"), []byte("ref: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(repo, "sub")
	rt, err := described.Runtime("mine", []byte(`{"executables":["mine"],"install_url":"https://example.com","token_env":["OTHER_TOKEN"],
		"env":{"PATH":"sub:.::`+inside+`:/usr/bin:/bin","LD_LIBRARY_PATH":"./lib:`+inside+`","LD_PRELOAD":"./x.so","NODE_PATH":"lib",
		"MINE_OPTIONS":"--load ./x","OTHER_TOKEN":"of-another-runtime"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	reg := new(registry.Registry)
	if err := reg.Register(rt); err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{
		Registry: reg, Warn: func(string) {},
		Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()},
	}
	result, err := r.Run(t.Context(), agent.Request{Runtime: "mine", Prompt: "x", Workdir: repo}, agent.Output{})
	if err != nil {
		t.Fatal(err)
	}
	environ := strings.Split(result.Text, "\n")
	for name, want := range map[string]string{
		"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "", "LD_PRELOAD": "", "NODE_PATH": "",
		"MINE_OPTIONS": "--load ./x", "OTHER_TOKEN": "of-another-runtime",
	} {
		if got, _ := agent.LookupEnv(environ, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
}
