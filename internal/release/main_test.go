package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestVersionsOfReleases(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "1.2.3", "v1.2", "latest", "v2.0.0", "v1.2.3+meta", "v1.2.3/../x"} {
		out := filepath.Join(t.TempDir(), "out")
		r := release{root: "../..", out: out, version: version, preferences: "v0.1.0"}
		if err := r.make(t.Context()); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%q leaves a folder", version)
		}
	}
}
