package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/policy"
)

// A policy that was loaded for one directory does not hold in a session of the repository
// that has it, and a wrong or useless one starts nothing.
func TestPoliciesThatStartNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(b.workdir, "policy.json")
	if err := os.WriteFile(file, []byte(`{"default":"decline"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := policy.Load(file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for want, settings := range map[string]control.Settings{
		"where the agent works":  {Workdir: b.workdir, Policy: loaded},
		"policy.json: it is in ": {Workdir: elsewhere, AddDirs: []string{b.workdir}, Policy: loaded},
		"no effect":              {Workdir: b.workdir, Access: agent.AccessFull, Policy: &policy.Policy{}},
		"the default":            {Workdir: b.workdir, Policy: &policy.Policy{Default: policy.Accept}},
	} {
		settings.Runtime = "talker"
		if _, err := b.Start(t.Context(), control.StartOptions{Settings: settings}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	h := b.start(control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: elsewhere, Policy: loaded}})
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Error(err)
	}
}
