package more

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// registered returns the runtimes of the catalogue.
func registered(t testing.TB) []registry.Runtime {
	t.Helper()
	var all []registry.Runtime
	for _, entry := range catalogue {
		rt, ok := registry.Default().Lookup(entry.id)
		if !ok {
			t.Fatalf("%s is not registered", entry.id)
		}
		all = append(all, rt)
	}
	return all
}

func TestCatalogueIsSorted(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, rt := range registered(t) {
		ids = append(ids, rt.ID)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("the order is %q", ids)
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, rt := range registered(t) {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			backendtest.Transcripts(t, rt, filepath.Join("testdata", rt.ID))
		})
	}
}
