package all_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
)

// A build that lacks a runtime of this module says how to get it.
func TestMissingRuntimesAreExplained(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, folder := range folders {
		id := folder.Name()
		if slices.Contains([]string{"all", "more", "rest"}, id) {
			continue // not the folder of one runtime
		}
		checked++
		_, _, err := registry.Default().ParseToken(id)
		if _, ok := registry.Default().Lookup(id); ok {
			if err != nil || registry.Default().Refused(id) != nil {
				t.Errorf("%s: %v", id, err)
			}
			continue
		}
		for _, want := range []string{"this build does not contain it", "tag", "import github.com/busdk/bus-agent/backends/" + id} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %q in it", id, err, want)
			}
		}
	}
	if checked < 7 {
		t.Errorf("only %d runtimes were found", checked)
	}
}
