package gemini

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// prepareTerminal arranges a terminal in the root of the repository.
func (p *place) prepareTerminal(t *testing.T) (registry.Setup, error) {
	t.Helper()
	w := backendtest.Workspace(t, p.root)
	p.req.Workdir, p.req.Root = w.Chain().Workdir, w.Chain().Root
	return prepareInteractive(t.Context(), p.req, w)
}

// The agents of a repository are left out, and the user's other settings stay.
func TestWithoutAgents(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"~/.gemini/settings.json": `{"a":1,"experimental":{"b":2,"enableAgents":true}}`})
	setup, err := p.prepareTerminal(t)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readObject(filepath.Join(homeIn(t, setup), settingsPath))
	if got := string(all["experimental"]); err != nil || got != `{"b":2,"enableAgents":false}` || string(all["a"]) != "1" {
		t.Errorf("%q, %v", all, err)
	}
	closeSetup(t, setup)
	if err := os.WriteFile(filepath.Join(p.home, settingsPath), []byte(`{"experimental":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.prepareTerminal(t); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("settings that are not understood: %v", err)
	}
}
