package backendtest

import (
	"testing"

	"github.com/busdk/bus-agent/instructions"
)

// Workspace opens the workspace of workdir, to test how a runtime prepares. It is closed
// at the end of the test.
func Workspace(t testing.TB, workdir string) *instructions.Workspace {
	t.Helper()
	chain, err := instructions.Discover(workdir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := instructions.Open(chain, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}
