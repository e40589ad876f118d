// Package testneed skips tests that need what a machine lacks, and lets no test be skipped
// in CI, which installs everything. The report of "make test" ends with what was skipped.
package testneed

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Lacking ends a test that needs what this system lacks: with CI=true on Linux, where every
// test must run, the test fails; elsewhere it is skipped.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if runtime.GOOS == "linux" && os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// LackingAsRoot is Lacking for what Linux guarantees to root alone: the test of another
// user is skipped.
func LackingAsRoot(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf(format, args...)
	}
	Lacking(t, format, args...)
}

// Program returns the path of a program that a test needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	Lacking(t, "no %s is installed", name)
	return ""
}
