package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// TestInfoMatchesTheOtherImplementation reads a file written by another
// implementation of the protocol and writes it again.
func TestInfoMatchesTheOtherImplementation(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "agent-protocol", "*", "*", "runs", "*", infoName))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var info Info
		if err := yaml.Unmarshal(want, &info); err != nil {
			t.Fatal(err)
		}
		got, err := marshalInfo(&info)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-theirs +ours):\n%s", file, diff)
		}
	}
}
