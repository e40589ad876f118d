package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const full = "github.com/busdk/bus-agent/cmd/bus-agent"

// A build with two runtimes is smaller than the one with all, and holds nothing
// of the others.
func TestBuildIsTrimmed(t *testing.T) {
	t.Parallel()
	trimmed, all := dependencies(t, "."), dependencies(t, full)
	for _, runtime := range []string{"cursor", "gemini"} {
		pkg := "github.com/busdk/bus-agent/backends/" + runtime
		if slices.Contains(trimmed, pkg) || !slices.Contains(all, pkg) {
			t.Errorf("%s: in the trimmed build %t, in the full one %t", pkg, slices.Contains(trimmed, pkg), slices.Contains(all, pkg))
		}
	}
	small, large := size(t, "."), size(t, full)
	t.Logf("%d of %d packages, %d of %d bytes", len(trimmed), len(all), small, large)
	if len(trimmed) >= len(all) || small >= large {
		t.Errorf("%d packages and %d bytes, the full build has %d and %d", len(trimmed), small, len(all), large)
	}
}

// The program knows its own runtimes and no others.
func TestProgramKnowsItsRuntimes(t *testing.T) {
	t.Parallel()
	c := exec.Command(build(t, "."), "run", "--agent", "gemini", "--text", "hi")
	c.Env = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `unknown runtime "gemini" (known: claude, codex, codex:local)`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func size(t *testing.T, pkg string) int64 {
	t.Helper()
	info, err := os.Stat(build(t, pkg))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func build(t *testing.T, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", binary, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
