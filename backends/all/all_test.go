package all_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// recordings returns the recorded outputs of a runtime.
func recordings(t testing.TB, rt registry.Runtime) map[string][]byte {
	t.Helper()
	switch {
	case rt.Run.Command == nil:
		return nil
	case rt.LastChoice:
		return backendtest.Recorded(t, filepath.Join("..", "more", "testdata", rt.ID))
	}
	return backendtest.Recorded(t, filepath.Join("..", rt.ID, "testdata"))
}

// packaged returns the runtimes outside the catalogue.
func packaged() []registry.Runtime {
	return slices.DeleteFunc(registry.Default().All(), func(rt registry.Runtime) bool { return rt.LastChoice })
}

// Each recorded line is recognized by its runtime alone or not at all, and each
// recorded output by one of its first lines. A runtime of the catalogue can share the form
// of the further lines with another.
func TestOutputIsRecognizedAsItsOwn(t *testing.T) {
	t.Parallel()
	const first = 3
	for _, rt := range registry.Default().All() {
		for file, output := range recordings(t, rt) {
			n, recognized := 0, false
			for line := range bytes.Lines(output) {
				n++
				for _, other := range registry.Default().All() {
					if other.Recognize == nil || !other.Recognize(line) {
						continue
					}
					if other.ID != rt.ID && (!rt.LastChoice || !recognized) {
						t.Errorf("%s:%d is taken for output of %s", file, n, other.ID)
					}
					recognized = recognized || n <= first
				}
			}
			if !recognized && rt.Recognize != nil {
				t.Errorf("%s is not recognized by its first lines", file)
			}
		}
	}
}

// running returns the runtimes that can run once.
func running() []registry.Runtime {
	return slices.DeleteFunc(registry.Default().All(), func(rt registry.Runtime) bool { return rt.Run.Command == nil })
}
