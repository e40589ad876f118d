package backendtest

import (
	"os"
	"path/filepath"
	"testing"
)

// A note of an agent exists whole or not at all, whenever the agent is ended.
func TestNotesAreWrittenInOneStep(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "agent"+seenSuffix)
	for _, text := range []string{"the first", "the second"} {
		if err := writeWhole(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := writeWhole(name, []byte("third")); err != nil {
		t.Fatal(err)
	}
	seen := make([]byte, 20)
	n, err := before.Read(seen)
	if err != nil || string(seen[:n]) != "the second" {
		t.Errorf("who reads while it is written sees %q, %v", seen[:n], err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "third" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if all, err := os.ReadDir(filepath.Dir(name)); err != nil || len(all) != 1 {
		t.Errorf("%d files exist, %v", len(all), err)
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ want, got, says string }{
		{"a\nb\nc\n", "a\nx\nc\n", "line 2 (-want +got):\n-b\n+x"},
		{"a\n", "a\nb\n", "line 2 (-want +got):\n-\n+b"},
		{"a\nb\n", "a\n", "line 2 (-want +got):\n-b\n+"},
		{"a\n", "a", "line 2 (-want +got):\n-\n+"},
	} {
		if says := difference([]byte(test.want), []byte(test.got)); says != test.says {
			t.Errorf("%q and %q: %q", test.want, test.got, says)
		}
	}
}
