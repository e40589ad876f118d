package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

func TestPrependInstructions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		warnings int
	}{
		"none":     {"", 0},
		"one":      {"be kind\n", 0},
		"too long": {strings.Repeat("be kind\n", instructions.MaxBytes/8+1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			w := backendtest.Workspace(t, dir)
			setup, err := registry.PrependInstructions(t.Context(), registry.Invocation{}, w)
			if err != nil {
				t.Fatal(err)
			}
			if len(setup.Warnings) != c.warnings || strings.Contains(setup.Prefix, "be kind") != (c.text != "") ||
				(c.text != "") != strings.HasSuffix(setup.Prefix, instructions.EndOfText) || len(w.Actions()) > 0 {
				t.Errorf("%d bytes, warnings %q, written %q", len(setup.Prefix), setup.Warnings, w.Actions())
			}
			for _, inv := range []registry.Invocation{{Resume: "s"}, {Continue: true}} {
				for _, inv.RequireInstructions = range []bool{false, true} {
					again, err := registry.PrependInstructions(t.Context(), inv, w)
					if want := inv.RequireInstructions && c.text != ""; err != nil || (again.Prefix != "") != want {
						t.Errorf("%+v: a session gets %d bytes, %v", inv, len(again.Prefix), err)
					}
				}
			}
		})
	}
}

func TestInvocationWithSetup(t *testing.T) {
	t.Parallel()
	own := append(make([]string, 0, 4), "--own")
	inv := registry.Invocation{Args: own, Continue: true}
	with := inv.With(registry.Setup{Args: []string{"--setup"}, Files: [][]byte{nil}, Resume: "id"})
	if !slices.Equal(with.Args, []string{"--setup", "--own"}) || with.Resume != "id" || with.Continue || len(with.Files) != 1 {
		t.Errorf("%+v", with)
	}
	if with := inv.With(registry.Setup{Args: []string{"--merged"}, CallerArgs: []string{}}); !slices.Equal(with.Args, []string{"--merged"}) || !with.Continue {
		t.Errorf("%+v", with)
	}
	if inv.Args[0] != "--own" || inv.Resume != "" || own[:2][1] != "" {
		t.Errorf("it changed the invocation: %+v, %q", inv, own[:2])
	}
}
