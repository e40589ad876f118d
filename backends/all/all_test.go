package all_test

import (
	"bytes"
	"path/filepath"
	"testing"

	_ "github.com/busdk/bus-agent/backends/all"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// Each recorded line is recognized by its runtime alone or not at all, and each
// recorded output by one of its first lines.
func TestOutputIsRecognizedAsItsOwn(t *testing.T) {
	t.Parallel()
	const first = 3
	for _, rt := range registry.Default().All() {
		for file, output := range backendtest.Recorded(t, filepath.Join("..", rt.ID, "testdata")) {
			n, recognized := 0, false
			for line := range bytes.Lines(output) {
				n++
				for _, other := range registry.Default().All() {
					if !other.Recognize(line) {
						continue
					}
					if other.ID != rt.ID {
						t.Errorf("%s:%d is taken for output of %s", file, n, other.ID)
					}
					recognized = recognized || n <= first
				}
			}
			if !recognized {
				t.Errorf("%s is not recognized by its first lines", file)
			}
		}
	}
}
